"""Model files: exact round trips, and one clear line for every kind of damage."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError
from linear_oracles import random_data


def named_data(seed: int = 0) -> er.RankingData:
    """Features named u, v, wide and not ASCII; groups a, b, c."""
    data = random_data(seed, groups=3, shuffled=False)
    return er.RankingData.from_arrays(
        data.features,
        data.relevance,
        data.group,
        data.query_of_row,
        feature_names=["u", "v v", "größe"],
        group_names=["a", "b", "c"],
    )


def saved(folder: Path, **options: Any) -> tuple[er.FairLinearRanker, Path]:
    ranker = er.FairLinearRanker(**{"notion": "dp", "alpha": 0.1} | options).fit(named_data())
    path = folder / "model.json"
    ranker.save(path)
    return ranker, path


# ---------------------------------------------------------------------- round trips


@pytest.mark.parametrize(
    "options",
    [{}, {"group_aware": True}, {"solver": "sgd", "alpha": np.float32(0.25), "batch_items": None}, {"scale": None}],
)
def test_a_loaded_model_is_the_saved_one(options: dict[str, Any], tmp_path: Path) -> None:
    ranker, path = saved(tmp_path, **options)
    again = er.load(str(path))
    assert type(again) is er.FairLinearRanker
    assert (again.coef_ == ranker.coef_).all()
    assert again.intercept_ == ranker.intercept_
    assert again.feature_names_ == ranker.feature_names_ == ("u", "v v", "größe")
    assert again.group_names_ == ("a", "b", "c")
    expected = ranker.get_params() | {"notion": "demographic_parity"}
    assert again.get_params() == expected
    for data in (named_data(), named_data(1)):
        assert (again.predict(data) == ranker.predict(data)).all()
    path2 = tmp_path / "again.json"
    again.save(path2)
    assert path2.read_bytes() == path.read_bytes()


def test_the_file_can_be_read_by_people(tmp_path: Path) -> None:
    ranker, path = saved(tmp_path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert list(content)[:3] == ["format", "version", "kind"]
    assert (content["format"], content["version"], content["kind"]) == ("evenrank-model", 1, "FairLinearRanker")
    assert content["evenrank"] == er.__version__
    assert content["weights"] == dict(zip(["u", "v v", "größe"], ranker.coef_.tolist(), strict=True))
    assert content["groups"] == ["a", "b", "c"]
    assert "größe" in path.read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8").count("\n") > 20


def test_a_notion_of_one_s_own_is_kept_by_name(tmp_path: Path) -> None:
    notion = er.Notion("parity_by_size", lambda data: [data.column("größe") > 0, data.column("größe") <= 0])
    ranker, path = saved(tmp_path, notion=notion)
    again = er.load(path)
    assert again.notion == "parity_by_size"
    assert (again.predict(named_data()) == ranker.predict(named_data())).all()
    with pytest.raises(ConfigError, match=r"notion must be one of .*got 'parity_by_size'"):
        again.fit(named_data())


def test_a_loaded_model_matches_features_by_name(tmp_path: Path) -> None:
    ranker, path = saved(tmp_path)
    again, data = er.load(path), named_data()
    expected = ranker.predict(data)
    turned = er.RankingData.from_arrays(
        data.features[:, [2, 0, 1]], data.relevance, None, data.query_of_row, feature_names=["größe", "u", "v v"]
    )
    np.testing.assert_allclose(again.predict(turned), expected, rtol=0, atol=1e-14)
    frame = pd.DataFrame(np.array(data.features), columns=list(data.feature_names))
    np.testing.assert_allclose(again.predict(frame), expected, rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match="same order"):
        again.predict(frame[["größe", "u", "v v"]])
    other = er.RankingData.from_arrays(
        data.features, data.relevance, None, data.query_of_row, feature_names=["u", "v v", "year"]
    )
    with pytest.raises(DataError, match=r"trained on 3 features \('u', 'v v', 'größe'\); the data lacks 'größe'"):
        again.predict(other)


def test_unnamed_features_stay_unnamed(tmp_path: Path) -> None:
    data = random_data(0)
    ranker = er.FairLinearRanker("dp", 0.1).fit(data)
    ranker.save(tmp_path / "m.json")
    again = er.load(tmp_path / "m.json")
    assert not hasattr(again, "feature_names_in_")
    assert (again.predict(np.array(data.features)) == ranker.predict(np.array(data.features))).all()


def test_groups_of_numbers_and_truth_values_come_back_as_such(tmp_path: Path) -> None:
    for labels in ([False, True, False], [1, 2, 10], [0.5, 1.5, 2.5]):
        data = named_data().with_group(np.array(labels)[named_data().group])
        ranker = er.FairLinearRanker("dp", 0.01, group_aware=True).fit(data)
        ranker.save(tmp_path / "m.json")
        again = er.load(tmp_path / "m.json")
        assert [type(name) for name in again.group_names_] == [type(name) for name in ranker.group_names_]
        assert (again.predict(data) == ranker.predict(data)).all()


# ---------------------------------------------------------------------- damage


def change(**changes: Any) -> Any:
    return lambda content: json.dumps(content | changes).encode()


def without(key: str) -> Any:
    return lambda content: json.dumps({name: value for name, value in content.items() if name != key}).encode()


def inside(key: str, **changes: Any) -> Any:
    return lambda content: json.dumps(content | {key: content[key] | changes}).encode()


DAMAGE: dict[str, tuple[Any, str]] = {
    "empty": (lambda content: b"", "is not JSON (line 1). Was it cut short?"),
    "cut short": (lambda content: json.dumps(content, indent=1).encode()[:300], "is not JSON (line"),
    "not JSON": (lambda content: b"coef: [1, 2]\n", "is not JSON (line 1)"),
    "binary": (lambda content: bytes(range(256)) * 9, "is not JSON. Was it cut short?"),
    "a pickle": (lambda content: b"\x80\x04\x95\x0c\x00\x00\x00.", "is not JSON"),
    "nested beyond reading": (lambda content: b"[" * 200_000, "is not JSON"),
    "a list": (lambda content: b"[1, 2]", 'has no "format": "evenrank-model"'),
    "other JSON": (lambda content: b'{"weights": {"u": 1}}', 'has no "format": "evenrank-model"'),
    "newer version": (change(version=2), "has model version 2; this evenrank reads version 1. Upgrade evenrank"),
    "no version": (without("version"), "has model version None"),
    "unknown kind": (change(kind="Forest"), "holds a 'Forest'; this evenrank knows"),
    "kind of no kind": (change(kind=["FairLinearRanker"]), "holds a ['FairLinearRanker']"),
    "no kind": (without("kind"), "holds a None"),
    "no weights": (without("weights"), "'weights' is missing or damaged"),
    "no intercept": (without("intercept"), "'intercept' is missing or damaged"),
    "no parameters": (without("parameters"), "'parameters' is missing or damaged"),
    "no groups": (without("groups"), "'groups' is missing or damaged"),
    "no offsets": (without("group_offset"), "'group_offset' is missing or damaged"),
    "no shares": (without("group_shares"), "'group_shares' is missing or damaged"),
    "null offsets": (change(group_offset=None), "'group_offset' is missing or damaged"),
    "weights of the wrong type": (change(weights=[1, 2, 3]), "'weights' is missing or damaged"),
    "weight as text": (inside("weights", u="0.5"), "'weights' must hold 3 finite numbers"),
    "weight true": (inside("weights", u=True), "'weights' must hold 3 finite numbers"),
    "weight null": (inside("weights", u=None), "'weights' must hold 3 finite numbers"),
    "weight NaN": (inside("weights", u=float("nan")), "'weights' must hold 3 finite numbers"),
    "weight beyond a float": (inside("weights", u=10**400), "'weights' must hold 3 finite numbers"),
    "intercept NaN": (change(intercept=float("nan")), "'intercept' must hold 1 finite numbers"),
    "intercept infinite": (change(intercept=float("inf")), "'intercept' must hold 1 finite numbers"),
    "intercept as text": (change(intercept="0.1"), "'intercept' is missing or damaged"),
    "intercept true": (change(intercept=True), "'intercept' is missing or damaged"),
    "offsets too short": (change(group_offset=[0.0, 1.0]), "'group_offset' must hold 3 finite numbers"),
    "shares too long": (change(group_shares=[0.25] * 4), "'group_shares' must hold 3 finite numbers"),
    "offsets nested": (change(group_offset=[[0.0], [1.0], [2.0]]), "'group_offset' must hold 3 finite numbers"),
    "unknown parameter": (inside("parameters", magic=1), "FairLinearRanker has no parameter 'magic'"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_gives_one_clear_line(damage: Any, message: str, tmp_path: Path) -> None:
    _, path = saved(tmp_path, group_aware=True)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_bytes(damage(content))
    with pytest.raises(DataError) as caught:
        er.load(path)
    text = str(caught.value)
    assert message in text
    assert "model.json" in text
    assert "\n" not in text
    assert len(text) < 250
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_undamaged_file_loads(tmp_path: Path) -> None:
    ranker, path = saved(tmp_path, group_aware=True)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    assert (er.load(path).coef_ == ranker.coef_).all()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.json"):
        er.load(tmp_path / "none.json")
    with pytest.raises(DataError, match=str(tmp_path)):
        er.load(tmp_path)


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    ranker, path = saved(tmp_path)
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=r"none' does not exist\. Create it first"):
        ranker.save(tmp_path / "none" / "model.json")
    with pytest.raises(ConfigError):
        ranker.save(tmp_path)
    ranker.batch_items = {1, 2}  # type: ignore[assignment]
    with pytest.raises(ConfigError, match="a parameter of type set cannot be written"):
        ranker.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.json"]


def test_an_unfitted_ranker_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(er.NotFittedError, match="Call fit before save"):
        er.FairLinearRanker().save(tmp_path / "model.json")
    assert os.listdir(tmp_path) == []
