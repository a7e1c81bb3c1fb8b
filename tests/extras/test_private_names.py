"""What the fair boosters use of LightGBM and XGBoost beyond their documented interfaces, each name with its purpose.

The libraries may change these in any release, so `pyproject.toml` bounds their versions from above. To allow a newer
one, raise the bound and run this file: a failure names what has gone and what it was used for.
"""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.extras

# Library → its estimator, and private names → what they are used for.
ESTIMATORS = {"lightgbm": "LGBMRanker", "xgboost": "XGBRanker"}
USED = {
    "lightgbm": {
        "_objective": "fit puts the fair objective in its place, and the parameter back afterwards",
        "_other_params": "set_params takes our parameters out of what is passed on to the library",
        "_process_params": "overridden, so that our parameters never reach the library",
        "_Booster": "the trees: counted, and put in place when a model file is read or the loss is named",
        "_best_iteration": "the number of trees to use",
        "_best_score": "what the evaluation sets had with that number of trees",
        "_evals_result": "what the evaluation sets had in every round",
        "_n_features": "a ranker read from a file knows its number of features",
        "_n_features_in": "the same, as scikit-learn asks for it",
        "_fitted_with_feature_names": "a ranker read from a file was not fitted on a frame",
    },
    "xgboost": {
        "_wrapper_params": "overridden, so that our parameters never reach the library",
        "_configure_fit": "the metric, the parameters and the model to go on from, as XGBRanker.fit makes them",
        "_create_ltr_dmatrix": "rows with their queries in the form that XGBRanker.fit gives them",
        "_set_evaluation_result": "keeps the history of the evaluation sets where XGBRanker keeps it",
        "_Booster": "the trees: counted, and put in place when a model file is read or the loss is named",
    },
}
# The arguments with which methods are called or overridden here.
ARGUMENTS = {
    ("lightgbm", "_process_params"): ["stage"],
    ("xgboost", "_wrapper_params"): [],
    ("xgboost", "_configure_fit"): ["booster", "params", "feature_weights"],
    ("xgboost", "_create_ltr_dmatrix"): ["ref", "data", "qid"],  # the rest is passed on to DMatrix
    ("xgboost", "_set_evaluation_result"): ["evals_result"],
}
SINCE = {("lightgbm", "_fitted_with_feature_names"): (4, 7)}  # without effect in versions before
NAMES = [(library, name) for library, names in USED.items() for name in names]


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    """The libraries' own rankers, fitted: some names appear only then."""
    X = np.arange(40.0).reshape(20, 2)
    y, sizes = np.tile([0, 1], 10), [10, 10]
    made = {}
    for library, name in ESTIMATORS.items():
        module = pytest.importorskip(library, reason="installed by make test-extras")
        quiet = {"verbose": -1, "min_child_samples": 1} if library == "lightgbm" else {}
        made[library] = getattr(module, name)(n_estimators=1, n_jobs=1, **quiet).fit(X, y, group=sizes)
    return made


@pytest.mark.parametrize(("library", "name"), NAMES)
def test_the_library_has_it(fitted, library, name):
    version = import_module(library).__version__
    if tuple(map(int, version.split(".")[:2])) < SINCE.get((library, name), ()):
        pytest.skip(f"not in {library} {version} yet")
    assert hasattr(fitted[library], name), (
        f"{library} {version} has no {ESTIMATORS[library]}.{name} any more, which evenrank/{library}.py uses: "
        f"{USED[library][name]}. Adapt it, or keep the version below {version} in pyproject.toml."
    )


@pytest.mark.parametrize(("library", "name"), list(ARGUMENTS))
def test_it_takes_the_arguments_that_we_give(fitted, library, name):
    taken = inspect.signature(getattr(fitted[library], name)).parameters
    missing = [argument for argument in ARGUMENTS[library, name] if argument not in taken]
    assert not missing, f"{library} {import_module(library).__version__}: {name} takes {list(taken)}, not {missing}"


@pytest.mark.parametrize("library", USED)
def test_every_private_name_is_listed(library):
    """Private attributes in our code that our classes do not define themselves are the library's."""
    module = pytest.importorskip(f"evenrank.{library}", reason="installed by make test-extras")
    tree = ast.parse(inspect.getsource(module))
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    own |= set(vars(import_module("evenrank.boosting.ranker").FairBoosted))
    private = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    }
    overridden = {name for name in own if name.startswith("_") and hasattr(_estimator(library), name)}
    assert (private - own) | (private & overridden) == set(USED[library])


def _estimator(library: str) -> Any:
    return getattr(import_module(library), ESTIMATORS[library])
