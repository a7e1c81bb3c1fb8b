"""Model files: exact round trips, and one clear line for every kind of damage."""

from __future__ import annotations

import hashlib
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
from model_files_v1 import CASES, loads_as_before
from model_mutations import nested, sealed, written


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
    assert (content["format"], content["version"], content["kind"]) == ("evenrank-model", 2, "FairLinearRanker")
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


# ---------------------------------------------------------------------- versions and the digest


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("linear", "deltr"))])
def test_files_of_version_1_load_as_before(name: str, tmp_path: Path) -> None:
    loads_as_before(name, tmp_path)


def test_the_digest_is_of_the_whole_content(tmp_path: Path) -> None:
    _, path = saved(tmp_path, group_aware=True)
    content = json.loads(path.read_text(encoding="utf-8"))
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))
    assert content["digest"] == hashlib.sha256(text.encode()).hexdigest()


def test_no_flipped_bit_gives_other_scores(tmp_path: Path) -> None:
    ranker, path = saved(tmp_path, group_aware=True)
    good, data = path.read_bytes(), named_data()
    expected, loaded = ranker.predict(data), 0
    for bit in range(0, 8 * len(good), 7):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            again = er.load(path)
        except DataError as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        assert (again.predict(data) == expected).all()  # only spaces between values can change
        loaded += 1
    assert loaded < 50


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": {"u": 1.0, "v v": 2.0, "größe": 3.0}}, "does not match its digest"),
        ({"evenrank": "9.9"}, "does not match its digest"),
        ({"digest": None}, "does not match its digest"),
        ({"version": 1}, "does not match its digest"),
    ],
)
def test_an_edited_file_is_told(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    _, path = saved(tmp_path)
    content = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataError, match=r"model\.json does not match its digest: it was damaged or edited"):
        er.load(path)
    del content["digest"]
    path.write_text(json.dumps(content | {"version": 2}), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        er.load(path)


def test_what_could_not_be_loaded_is_not_written(tmp_path: Path) -> None:
    ranker, path = saved(tmp_path)
    before = path.read_bytes()
    ranker.alpha = -1.0
    with pytest.raises(
        ConfigError, match="cannot be written: the parameter 'alpha' must be a finite number of at least 0"
    ):
        ranker.save(path)
    ranker.alpha = 1.0
    ranker.coef_ = ranker.coef_ * np.inf
    with pytest.raises(ConfigError, match="a number that is not finite"):
        ranker.save(path)
    assert path.read_bytes() == before


def test_parameters_of_the_machine_stay_out_of_it(tmp_path: Path) -> None:
    _, path = saved(tmp_path, verbose=True)
    assert "verbose" not in path.read_text(encoding="utf-8")
    assert er.load(path).verbose is False


# ---------------------------------------------------------------------- damage


# Changes are sealed anew, as an attacker can: what they break must be found without the digest.


def change(**changes: Any) -> Any:
    return lambda content: written(content | changes)


def without(key: str) -> Any:
    return lambda content: written({name: value for name, value in content.items() if name != key})


def inside(key: str, **changes: Any) -> Any:
    return lambda content: written(content | {key: content[key] | changes})


def parameter(**changes: Any) -> Any:
    return inside("parameters", **changes)


DAMAGE: dict[str, tuple[Any, str]] = {
    "empty": (lambda content: b"", "is not JSON (line 1). Was it cut short?"),
    "cut short": (lambda content: json.dumps(content, indent=1).encode()[:300], "is not JSON (line"),
    "not JSON": (lambda content: b"coef: [1, 2]\n", "is not JSON (line 1)"),
    "binary": (lambda content: bytes(range(256)) * 9, "is not JSON. Was it cut short?"),
    "a pickle": (lambda content: b"\x80\x04\x95\x0c\x00\x00\x00.", "is not JSON"),
    "nested beyond reading": (lambda content: b"[" * 200_000, "is not JSON"),
    "a list": (lambda content: b"[1, 2]", 'has no "format": "evenrank-model"'),
    "other JSON": (lambda content: b'{"weights": {"u": 1}}', 'has no "format": "evenrank-model"'),
    "newer version": (change(version=3), "has model version 3; this evenrank reads versions 1 and 2. Upgrade evenrank"),
    "version true": (change(version=True), "has model version True"),
    "version of a list": (change(version=[2]), "has model version [2]"),
    "doubled key": (lambda content: written(content).replace(b'"groups"', b'"weights"'), "a key occurs twice"),
    "doubled weight": (lambda content: written(content).replace(b'"v v"', b'"u"'), "a key occurs twice"),
    "half a character": (change(groups=["a", "b", "\ud800"]), "a text has half a character"),
    "400 digits": (change(intercept=10**399), "a whole number has 400 digits"),
    "nested in a parameter": (parameter(alpha=nested(100)), "the parameter 'alpha' must be"),
    "nested beyond reading, inside": (
        lambda content: written(content).replace(b'"alpha": 0.1', b'"alpha": ' + b"[" * 200_000),
        "is not JSON",
    ),
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
    "weight beyond a float": (inside("weights", u=float("inf")), "'weights' must hold 3 finite numbers"),
    "weights of terabytes": (change(weights={"u": [0] * 100}), "'weights' must hold 1 finite numbers"),
    "weight of 400 digits": (inside("weights", u=10**400), "a whole number has 401 digits"),
    "intercept NaN": (change(intercept=float("nan")), "'intercept' must hold 1 finite numbers"),
    "intercept infinite": (change(intercept=float("inf")), "'intercept' must hold 1 finite numbers"),
    "intercept as text": (change(intercept="0.1"), "'intercept' is missing or damaged"),
    "intercept true": (change(intercept=True), "'intercept' is missing or damaged"),
    "offsets too short": (change(group_offset=[0.0, 1.0]), "'group_offset' must hold 3 finite numbers"),
    "shares too long": (change(group_shares=[0.25] * 4), "'group_shares' must hold 3 finite numbers"),
    "offsets nested": (change(group_offset=[[0.0], [1.0], [2.0]]), "'group_offset' must hold 3 finite numbers"),
    "unknown parameter": (inside("parameters", magic=1), "FairLinearRanker has no parameter 'magic'"),
    "a notion of masks": (parameter(notion=[[1, 0], [0, 1]]), "'notion' must be a name; got [[1, 0], [0, 1]]"),
    "a strength in words": (parameter(alpha="x"), "'alpha' must be a finite number of at least 0; got 'x'"),
    "a strength below 0": (parameter(alpha=-1), "'alpha' must be a finite number of at least 0; got -1"),
    "a strength true": (parameter(alpha=True), "'alpha' must be a finite number of at least 0; got True"),
    "a threshold that is none": (parameter(relevance_threshold=float("nan")), "'relevance_threshold' must be a finite"),
    "k of a half": (parameter(k=2.5), "'k' must be a whole number of at least 1; got 2.5"),
    "a flag of a text": (parameter(group_aware="no"), "'group_aware' must be true or false; got 'no'"),
    "a name of a book": (parameter(solver="x" * 5000), "'solver' must be a name; got 'xxxxx"),
    "groups that are lists": (change(groups=[["a"], ["b"], ["c"]]), "'groups' must hold names; got [['a']"),
    "groups twice": (change(groups=["a", "b", "a"]), "'groups' has a name twice"),
    "a group that is no number": (change(groups=["a", "b", float("nan")]), "'groups' must hold names"),
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
    assert len(text) < 260
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("depth", [*range(900, 1010, 9)])
def test_nesting_at_the_edge_of_what_can_be_read(depth: int, tmp_path: Path) -> None:
    _, path = saved(tmp_path)
    good = path.read_text(encoding="utf-8")
    path.write_text(good.replace('"alpha": 0.1', '"alpha": ' + "[" * depth + "]" * depth), encoding="utf-8")
    with pytest.raises(DataError, match=r"not JSON|not match its digest"):
        er.load(path)
    content = json.loads(good) | {"version": 1}
    del content["digest"]
    text = json.dumps(content).replace('"alpha": 0.1', '"alpha": ' + "[" * depth + "]" * depth)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"not JSON|'alpha' must be a finite number"):
        er.load(path)


def test_the_undamaged_file_loads(tmp_path: Path) -> None:
    ranker, path = saved(tmp_path, group_aware=True)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content), encoding="utf-8")  # spaces and escapes are not part of the digest
    assert (er.load(path).coef_ == ranker.coef_).all()
    assert sealed(content) == content


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
