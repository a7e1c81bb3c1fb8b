"""One page per public name and per public module: signatures and types from the code, words from its docstrings."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from typing import Any

from sphinx.ext.autodoc.mock import mock

import evenrank
from evenrank.extras import EXTRA_OF

GROUPS = {
    "Data": "RankingData Ranking read scan RankingFiles joint_groups",
    "Fairness": "Notion Contrast violation FairnessSpec Moments",
    "Measures": "measure by_group measures_table selection_rates Measure MeasureAt Options",
    "How sure": "interval intervals Interval compare Comparison PairComparison noticeable Noticeable",
    "Rankers": "FairLinearRanker fairness_path FairnessPath strength_grid DELTR deltr_path load QueryKFold "
    "ranking_scorer",
    "Re-rankers": "GroupOffset FAStar FairController QuantileMatch QuantileBarycentre EqualOpportunityTransform "
    "DetRanker MultinomialFAStar ExposureRanker StochasticRanking EquityOfAttention",
    "Audits": "audit Audit Finding Rate audit_page bias_audit BiasAudit bias_audit_page monitor Monitor Monitored",
    "Experiments": "sweep Sweep select Choice Outcome HeldOut Curve Trial About Titles report_page bench Bench "
    "BenchData Standing Method METHODS",
    "Errors": "EvenrankError DataError ConfigError MissingExtraError NotFittedError DataWarning",
}
ABSENT = [name for name in EXTRA_OF if find_spec(name) is None]


def _first_line(value: Any) -> str:
    text = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def _members(cls: type) -> list[str]:
    """The public methods and properties that our own classes define, in their order, each with words of its own."""
    found: dict[str, None] = {}
    for base in cls.__mro__:
        if not base.__module__.startswith("evenrank"):
            continue
        for name, value in vars(base).items():
            plain = inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)
            if plain and not name.startswith("_") and inspect.getdoc(getattr(cls, name)):
                found.setdefault(name)
    return list(found)


def _directive(qualified: str, value: Any) -> str:
    if inspect.isclass(value):
        members = _members(value)
        lines = [f".. autoclass:: {qualified}"]
        if members:
            lines.append(f"   :members: {', '.join(members)}")
        if issubclass(value, BaseException):
            lines.append("   :show-inheritance:")
        return "\n".join(lines) + "\n"
    if inspect.isfunction(value):
        return f".. autofunction:: {qualified}\n"
    return f".. py:data:: {qualified}\n\n   A {type(value).__name__}. :doc:`/generated/methods` has what is in it.\n"


def _module(name: str, module: Any) -> str:
    text = _title(f"evenrank.{name}") + "\n" + (inspect.getdoc(module) or "") + "\n"
    extra = EXTRA_OF.get(name)
    if extra:
        text += f"\nNeeds ``pip install 'evenrank[{extra}]'``.\n"
    for member in getattr(module, "__all__", []):
        value = getattr(module, member)
        if member in evenrank._NAMES and value is getattr(evenrank, member):
            text += f"\n:doc:`{member}` has a page of its own.\n"
        elif inspect.isclass(value) or inspect.isfunction(value):
            text += "\n" + _directive(f"evenrank.{name}.{member}", value)
    return text


def pages() -> dict[str, str]:
    made: dict[str, str] = {}
    modules = list(evenrank._MODULES)
    names = list(evenrank._NAMES)
    grouped = {title: text.split() for title, text in GROUPS.items()}
    rest = [name for name in names if not any(name in group for group in grouped.values())]
    if rest:
        grouped["More"] = rest
    index = (
        "# The Python reference\n\n`import evenrank as er`. Made from the code when this site was built: signatures "
        "and types are those of the program, and every example on these pages runs in its tests.\n"
    )
    with mock(ABSENT):
        for title, group in grouped.items():
            index += f"\n## {title}\n\n| name | |\n|---|---|\n"
            for name in group:
                value = getattr(evenrank, name)
                made[f"api/{name}.rst"] = _title(f"er.{name}") + "\n" + _directive(f"evenrank.{name}", value)
                index += f"| [`er.{name}`]({name}.rst) | {_first_line(value) if callable(value) else ''} |\n"
        index += "\n## Modules\n\n| name | |\n|---|---|\n"
        for name in modules:
            module = getattr(evenrank, name)
            made[f"api/module-{name}.rst"] = _module(name, module)
            index += f"| [`er.{name}`](module-{name}.rst) | {_first_line(module)} |\n"
    order = [name for group in grouped.values() for name in group] + [f"module-{name}" for name in modules]
    index += "\n```{toctree}\n:hidden:\n\n" + "\n".join(order) + "\n```\n"
    return made | {"api/index.md": index}
