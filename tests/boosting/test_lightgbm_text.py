"""LightGBM's text: real ones pass byte for byte; each way to mislead its reader is told. No library is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from evenrank.boosting.lightgbm_text import checked_text, read_text
from evenrank.boosting.trees import Damaged
from model_files_v1 import FOLDER
from model_mutations import with_sizes

MODELS = ["lightgbm", "lightgbm_categorical", "lightgbm_native"]


def text_of(name: str) -> str:
    return str(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["model"])


@pytest.mark.parametrize("name", MODELS)
def test_a_real_text_passes_byte_for_byte_and_ends_with_its_trees(name: str) -> None:
    text = text_of(name)
    trees = text[: text.index("end of trees\n") + len("end of trees\n")]
    assert checked_text(text, 3) == trees + "\npandas_categorical:null\n"
    assert checked_text(checked_text(text, 3), 3) == checked_text(text, 3)


def test_the_categories_of_a_frame_are_kept() -> None:
    text = text_of("lightgbm").replace("pandas_categorical:null", 'pandas_categorical:[["x", "ü"], [3, 0.5, null]]')
    assert checked_text(text, 3).endswith('\npandas_categorical:[["x", "\\u00fc"], [3, 0.5, null]]\n')


def test_nothing_of_the_parameters_is_kept() -> None:
    text = text_of("lightgbm").replace("[forcedsplits_filename: ]", "[forcedsplits_filename: /dev/zero]")
    assert "forcedsplits" in text
    assert "forcedsplits" not in checked_text(text, 3)


def line(key: str, value: str, tree: int = 0) -> Callable[[str], str]:
    """The line of a key in a tree (or in the head, where it is) with another value, sizes put right."""

    def changed(text: str) -> str:
        places = [match.span() for match in re.finditer(rf"^{key}=.*$", text, re.MULTILINE)]
        first, last = places[tree]
        return with_sizes(text[:first] + f"{key}={value}" + text[last:])

    return changed


def replaced(old: str, new: str, *, sizes: bool = True) -> Callable[[str], str]:
    def changed(text: str) -> str:
        assert old in text
        return with_sizes(text.replace(old, new, 1)) if sizes else text.replace(old, new, 1)

    return changed


DAMAGE: dict[str, tuple[Callable[[str], str], str]] = {
    "not a model": (lambda text: "no trees", "line 1 must be 'tree'"),
    "empty": (lambda text: "", "line 1 must be 'tree'"),
    "cut in a tree": (lambda text: text[: text.index("leaf_weight")], "must give leaf_weight; got ''"),
    "cut after the trees": (lambda text: text[: text.index("end of trees")], "must be 'end of trees'"),
    "another version": (replaced("version=v4", "version=v3"), "must be 'version=v4'"),
    "several classes": (replaced("num_class=1", "num_class=3"), "must be 'num_class=1'"),
    "two trees per round": (replaced("per_iteration=1", "per_iteration=2"), "must be 'num_tree_per_iteration=1'"),
    "no trees per round": (replaced("per_iteration=1", "per_iteration=0"), "must be 'num_tree_per_iteration=1'"),
    "more features": (replaced("max_feature_idx=2", "max_feature_idx=2147483647"), "must be 'max_feature_idx=2'"),
    "an unknown objective": (
        replaced("feature_names=", "objective=multiclass num_class:3\nfeature_names="),
        "objective 'multiclass num_class:3' is not one of a ranker's",
    ),
    "names missing": (line("feature_names", "a b"), "feature_names must be 3 names"),
    "a name that is empty": (line("feature_names", "a  b"), "feature_names must be 3 names"),
    "a name with a control character": (line("feature_names", "a b c\x01"), "feature_names must be 3 names"),
    "a direction that is none": (
        replaced("feature_infos=", "monotone_constraints=1 0 2\nfeature_infos="),
        "monotone_constraints .* outside -1 to 1",
    ),
    "directions missing": (
        replaced("feature_infos=", "monotone_constraints=1 0\nfeature_infos="),
        "monotone_constraints .* must be 3 whole numbers",
    ),
    "ranges missing": (line("feature_infos", "none none"), "feature_infos must be 3 ranges"),
    "ranges of nonsense": (line("feature_infos", "none none x"), "feature_infos must be 3 ranges"),
    "sizes too small": (replaced("tree_sizes=", "tree_sizes=1 ", sizes=False), "tree_sizes gives tree 0 1 bytes"),
    "sizes swapped": (
        lambda text: re.sub(r"tree_sizes=(\d+) (\d+)", r"tree_sizes=\g<2>9 \1", text),
        "tree_sizes gives tree 0",
    ),
    "sizes negative": (replaced("tree_sizes=", "tree_sizes=-", sizes=False), "tree_sizes .* outside 0 to"),
    "trees of another order": (replaced("Tree=1\n", "Tree=0\n"), "must be 'Tree=1'"),
    "no leaves": (line("num_leaves", "0"), "num_leaves .* outside 1 to"),
    "leaves beyond memory": (line("num_leaves", "2147483647"), "split_feature .* must be 2147483646 whole numbers"),
    "one leaf more": (line("num_leaves", "6"), "split_feature .* must be 5 whole numbers"),
    "categories beyond memory": (line("num_cat", "2147483647"), "num_cat .* outside 0 to 4"),
    "categories without sets": (line("num_cat", "1"), "must give cat_boundaries"),
    "a feature beyond": (line("split_feature", "3 0 0 0"), "tree 0 splits a feature outside the 3"),
    "a feature below": (line("split_feature", "-1 0 0 0"), "tree 0 splits a feature outside the 3"),
    "a threshold that is none": (line("threshold", "nan 0 0 0"), "threshold .* must be 4 finite numbers"),
    "a threshold beyond": (line("threshold", "1e+999 0 0 0"), "threshold .* must be 4 finite numbers"),
    "digits of another script": (line("threshold", "٣ 0 0 0"), "threshold .* must be 4 finite numbers"),
    "a hexadecimal": (line("leaf_count", "0x10 1 1 1 1"), "leaf_count .* must be 5 whole numbers"),
    "an unknown decision": (line("decision_type", "12 2 2 2"), "decision_type .* outside 0 to 11"),
    "a split by categories": (line("decision_type", "1 2 2 2"), "a split by categories it does not hold"),
    "a loop": (line("left_child", "0 -1 -2 -3"), "tree 0 reaches a node twice"),
    "a loop in the place of the last node": (line("left_child", "-1 2 0 -2"), "tree 0 reaches a node twice"),
    "a child beyond": (line("left_child", "9 -1 -2 -3"), "left_child .* outside -5 to 3"),
    "a leaf beyond": (line("left_child", "-6 -1 -2 -3"), "left_child .* outside -5 to 3"),
    "a leaf that is none": (line("leaf_value", "nan 0 0 0 0"), "leaf_value .* must be 5 finite numbers"),
    "leaves missing": (line("leaf_value", "0 0 0 0"), "leaf_value .* must be 5 finite numbers"),
    "weights missing": (line("leaf_weight", ""), "leaf_weight .* must be 5 finite numbers"),
    "counts missing": (line("leaf_count", ""), "leaf_count .* must be 5 whole numbers"),
    "linear without weights": (line("is_linear", "1"), "must give leaf_const"),
    "an end of line of another kind": (replaced("num_cat=0\n", "num_cat=0\r\n"), "num_cat"),
    "a line too many": (replaced("shrinkage=", "extra=1\nshrinkage="), "must give shrinkage"),
    "a section between": (replaced("end of trees", "parameters:\nend of trees", sizes=False), "must be 'end of trees'"),
    "categories of a frame that are no JSON": (replaced("categorical:null", "categorical:[[1"), "line 1 column"),
    "categories of a frame that are no lists": (
        replaced("categorical:null", 'categorical:{"a": 1}'),
        "lists of labels",
    ),
    "categories of a frame that are a number": (replaced("categorical:null", "categorical:5"), "lists of labels"),
    "categories of a frame that are an empty object": (
        replaced("categorical:null", "categorical:{}"),
        "lists of labels",
    ),
    "categories of a column that are a text": (replaced("categorical:null", 'categorical:["ab"]'), "lists of labels"),
    "categories of a column that are a number": (replaced("categorical:null", "categorical:[5]"), "lists of labels"),
    "categories that are objects": (replaced("categorical:null", 'categorical:[[{"a": 1}]]'), "lists of labels"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_what_would_mislead_lightgbm_is_told(damage: Callable[[str], str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked_text(damage(text_of("lightgbm")), 3)


def test_a_text_cut_at_any_line_is_told() -> None:
    lines = text_of("lightgbm").split("\n")
    for count in range(lines.index("end of trees")):
        with pytest.raises(Damaged, match=r"^line [0-9]+ must |^tree_sizes gives "):
            checked_text("\n".join(lines[:count]), 3)


def test_directions_and_trees_that_are_averaged_pass() -> None:
    text = text_of("lightgbm").replace("feature_infos=", "monotone_constraints=1 0 -1\nfeature_infos=")
    averaged = text.replace("feature_names=", "average_output\nfeature_names=")
    for given, average in ((text, False), (averaged, True)):
        assert checked_text(given, 3).startswith(given.partition("end of trees")[0])
        assert read_text(given).average == average


@pytest.mark.parametrize("threshold", ["2", "-1", "0.5", "1e+300"])
def test_a_split_names_one_of_the_sets_of_categories(threshold: str) -> None:
    text = text_of("lightgbm_categorical")
    damaged = with_sizes(text.replace("989 0 1 0.17", f"989 {threshold} 1 0.17", 1))
    assert damaged != text
    with pytest.raises(Damaged, match="tree 0 has a split by categories it does not hold"):
        checked_text(damaged, 3)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("cat_boundaries", "0 5", "cat_boundaries .* must be 3 whole numbers"),
        ("cat_boundaries", "0 9 2", "cat_boundaries of tree 0 do not ascend"),
        ("cat_boundaries", "1 1 2", "cat_boundaries of tree 0 do not ascend"),
        ("cat_boundaries", "0 1 2147483647", "cat_threshold .* must be 2147483647 whole numbers"),
        ("cat_threshold", "1", "cat_threshold .* must be"),
        ("cat_threshold", "-1 0 0 0", "cat_threshold .* outside 0 to 4294967295"),
    ],
)
def test_sets_of_categories_have_bounds(key: str, value: str, message: str) -> None:
    with pytest.raises(Damaged, match=message):
        checked_text(line(key, value)(text_of("lightgbm_categorical")), 3)


def test_a_chain_that_never_ends_is_no_tree() -> None:
    n = 6000
    head = text_of("lightgbm").split("\nTree=0")[0]
    inner = {
        "num_leaves": str(n + 1),
        "num_cat": "0",
        **dict.fromkeys(("split_feature", "split_gain", "threshold", "decision_type"), " ".join(["0"] * n)),
        "left_child": " ".join([*map(str, range(1, n)), f"-{n + 1}"]),
        "right_child": " ".join(f"-{leaf}" for leaf in range(1, n + 1)),
        **dict.fromkeys(("leaf_value", "leaf_weight", "leaf_count"), " ".join(["0"] * (n + 1))),
        **dict.fromkeys(("internal_value", "internal_weight", "internal_count"), " ".join(["0"] * n)),
        "is_linear": "0",
        "shrinkage": "1",
    }
    tree = "".join(f"{key}={value}\n" for key, value in inner.items())
    with pytest.raises(Damaged, match="tree 0 is deeper than 5000 levels"):
        checked_text(with_sizes(f"{head}\nTree=0\n{tree}\n\nend of trees\n"), 3)


LINEAR_TREE = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=1
feature_names=a b
feature_infos=[0:1] [0:1]
tree_sizes=0

Tree=0
num_leaves=2
num_cat=0
split_feature=0
split_gain=1
threshold=0.5
decision_type=2
left_child=-1
right_child=-2
leaf_value=1 2
leaf_weight=1 1
leaf_count=1 1
internal_value=0
internal_weight=2
internal_count=2
is_linear=1
leaf_const=0 1e-300
num_features=1 1
leaf_features=0  1  
leaf_coeff=2.5e-308  -0  
shrinkage=1


end of trees
"""  # noqa: W291


ONE_LEAF = (
    LINEAR_TREE[: LINEAR_TREE.index("num_leaves")]
    + """num_leaves=1
num_cat=0
split_feature=
split_gain=
threshold=
decision_type=
left_child=
right_child=
leaf_value=0.5
leaf_weight=
leaf_count=
internal_value=
internal_weight=
internal_count=
is_linear=0
shrinkage=1


end of trees
"""
)


@pytest.mark.parametrize(("weight", "count"), [("", ""), ("2.5", "7"), ("", "7"), ("2.5", "")])
def test_a_tree_may_be_one_leaf(weight: str, count: str) -> None:
    text = with_sizes(ONE_LEAF.replace("weight=\nleaf_count=", f"weight={weight}\nleaf_count={count}"))
    assert checked_text(text, 2).startswith(text)
    (tree,) = read_text(text).trees
    assert (tree.left.tolist(), tree.right.tolist(), tree.value.tolist()) == ([-1], [-1], [0.5])


@pytest.mark.parametrize(("key", "extra"), [("leaf_weight", "1 2"), ("leaf_count", "1 2"), ("threshold", "1")])
def test_one_leaf_has_nothing_of_more(key: str, extra: str) -> None:
    with pytest.raises(Damaged, match=f"{key} .* must be"):
        checked_text(with_sizes(ONE_LEAF.replace(f"{key}=", f"{key}={extra}")), 2)


@pytest.mark.parametrize("tiny", ["1e-320", "-1e-310", "1e-400", "0.0000000001e-300"])
@pytest.mark.parametrize(
    ("good", "bad"), [("leaf_const=0 1e-300", "leaf_const=0 {}"), ("leaf_coeff=2.5e-308 ", "leaf_coeff={} ")]
)
def test_numbers_that_end_the_process_in_linear_leaves_are_refused(good: str, bad: str, tiny: str) -> None:
    text = with_sizes(LINEAR_TREE)
    assert checked_text(text, 2).startswith(text)
    with pytest.raises(Damaged, match=r"of tree 0 has a number too small for LightGBM to read"):
        checked_text(with_sizes(text.replace(good, bad.format(tiny))), 2)


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("leaf_features=0  1  ", "leaf_features=0  1  1  ", "leaf_features of tree 0 must be 2 numbers, leaf by leaf"),
        ("leaf_features=0  1  ", "leaf_features=0 1  ", "leaf_features of tree 0 must be 2 numbers, leaf by leaf"),
        ("leaf_features=0  1  ", "leaf_features=0  0x1  ", "leaf_features of tree 0 must be 2 numbers, leaf by leaf"),
        ("leaf_features=0  1  ", "leaf_features=0  2  ", "tree 0 has a leaf with a feature outside the 2"),
        ("leaf_features=0  1  ", "leaf_features=-1  1  ", "tree 0 has a leaf with a feature outside the 2"),
        ("leaf_coeff=2.5e-308  -0  ", "leaf_coeff=1  ", "leaf_coeff of tree 0 must be 2 numbers, leaf by leaf"),
        ("leaf_coeff=2.5e-308  -0  ", "leaf_coeff=1    ", "leaf_coeff of tree 0 must be 2 numbers, leaf by leaf"),
        ("leaf_coeff=2.5e-308  -0  ", "leaf_coeff=1  nan  ", "leaf_coeff of tree 0 must be 2 numbers, leaf by leaf"),
        ("leaf_coeff=2.5e-308  -0  ", "leaf_coeff=1  1e+999  ", "leaf_coeff of tree 0 must be finite"),
        ("num_features=1 1", "num_features=1 3", "num_features .* outside 0 to 2"),
    ],
)
def test_linear_leaves_have_bounds(good: str, bad: str, message: str) -> None:
    assert good in LINEAR_TREE
    with pytest.raises(Damaged, match=message):
        checked_text(with_sizes(LINEAR_TREE.replace(good, bad)), 2)


@pytest.mark.parametrize("line", ["", "max_feature_idx=-1\n", "max_feature_idx=9999999999\n"])
def test_a_text_to_export_says_how_many_features_it_has(line: str) -> None:
    text = with_sizes(LINEAR_TREE)
    assert read_text(text).n_features == 2
    with pytest.raises(Damaged, match="it has no max_feature_idx"):
        read_text(text.replace("max_feature_idx=1\n", line))


def test_a_threshold_may_be_endless_and_nothing_else() -> None:
    text = text_of("lightgbm")
    first = re.search(r"^threshold=(\S+)", text, re.MULTILINE)
    assert first is not None
    endless = with_sizes(text.replace(first[0], "threshold=inf", 1))
    assert "threshold=inf " in checked_text(endless, 3)
    for key, value in (("threshold", "-inf"), ("threshold", "nan"), ("leaf_value", "inf")):
        found = re.search(rf"^{key}=(\S+)", text, re.MULTILINE)
        assert found is not None
        with pytest.raises(Damaged, match=f"{key} .* must be"):
            checked_text(with_sizes(text.replace(found[0], f"{key}={value}", 1)), 3)
