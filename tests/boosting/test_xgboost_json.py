"""XGBoost's JSON: real ones pass and say the same; each way to mislead its reader is told. No library is needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from evenrank.boosting.trees import Damaged
from evenrank.boosting.xgboost_json import FLOATS, WHOLES, checked_model, read_model
from model_files_v1 import FOLDER

MODELS = ["xgboost", "xgboost_dart", "xgboost_categorical"]


def model_of(name: str) -> dict[str, Any]:
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return dict(json.loads(content["model"]))


@pytest.mark.parametrize("name", MODELS)
def test_a_real_model_passes_unchanged(name: str) -> None:
    assert json.loads(checked_model(json.dumps(model_of(name)), 3)) == model_of(name)


def test_names_keep_their_letters() -> None:
    model = model_of("xgboost")
    model["learner"]["feature_names"] = ["größe", 'a"b', "c\nd"]
    text = checked_model(json.dumps(model), 3)
    assert "größe" in text  # XGBoost does not read \\u00f6
    assert json.loads(text)["learner"]["feature_names"] == ["größe", 'a"b', "c\nd"]


def learner(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda model: model["learner"].update({key: value})


def param(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda model: model["learner"]["learner_model_param"].update({key: value})


def forest(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda model: model["learner"]["gradient_booster"]["model"].update({key: value})


def tree(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Another value in the first tree, or at one place of an array: (place, value)."""

    def change(model: dict[str, Any]) -> None:
        first = model["learner"]["gradient_booster"]["model"]["trees"][0]
        if isinstance(value, tuple):
            first[key][value[0]] = value[1]
        else:
            first[key] = value

    return change


def tree_param(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda model: model["learner"]["gradient_booster"]["model"]["trees"][0]["tree_param"].update({key: value})


def settings(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda model: model["learner"]["objective"]["lambdarank_param"].update(values)


def biases(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda model: model["learner"]["objective"].update(values)


DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another key": (lambda model: model.update(config={}), "the model has 'config', which this evenrank does not know"),
    "no learner": (lambda model: model.pop("learner"), "the model has no 'learner'"),
    "a learner that is a list": (lambda model: model.update(learner=[]), "learner must be an object"),
    "an old version": (lambda model: model.update(version=[1, 0, 0]), "written by XGBoost 1"),
    "a version of texts": (lambda model: model.update(version=["3", 0, 0]), "version must be numbers"),
    "an unknown objective": (
        learner("objective", {"name": "multi:softmax", "lambdarank_param": {}}),
        "objective must be",
    ),
    "bias lists missing": (
        learner("objective", {"name": "rank:ndcg", "lambdarank_param": {"lambdarank_unbiased": "1"}}),
        "ti. and tj- are missing",
    ),
    "names missing": (learner("feature_names", ["a"]), "feature_names must be 3 texts or none"),
    "names that are one text": (learner("feature_names", "abc"), "feature_names must be 3 texts or none"),
    "names that are a number": (learner("feature_names", 3), "feature_names must be 3 texts or none"),
    "names that are numbers": (learner("feature_names", [1, 2, 3]), "feature_names must be 3 texts or none"),
    "a name with a control character": (
        learner("feature_names", ["a", "b", "c\x01"]),
        "feature_names must be 3 texts or none",
    ),
    "names twice": (learner("feature_names", ["a", "a", "b"]), "feature_names has a name twice"),
    "types unknown": (learner("feature_types", ["q", "q", "z"]), "feature_types must be of"),
    "a round beyond": (learner("attributes", {"best_iteration": "4"}), "best_iteration must be below 4"),
    "a round of letters": (learner("attributes", {"best_iteration": "abc"}), "best_iteration must be below 4"),
    "attributes that are a list": (learner("attributes", ["a"]), "attributes must be texts"),
    "attributes that are a text": (learner("attributes", ""), "attributes must be texts"),
    "attributes of numbers": (learner("attributes", {"a": 1}), "attributes must be texts"),
    "an unknown booster": (learner("gradient_booster", {"name": "forest"}), "gbtree, dart or gblinear; got 'forest'"),
    "dart in dart": (
        learner("gradient_booster", {"name": "dart", "gbtree": {"name": "gblinear"}, "weight_drop": []}),
        "gblinear has no 'model'",
    ),
    "weights too few": (
        learner("gradient_booster", {"name": "gblinear", "model": {"weights": [1.0], "boosted_rounds": 1}}),
        "weights must have 4 entries",
    ),
    "several classes": (param("num_class", "3"), "num_class must be '0'; got '3'"),
    "several targets": (param("num_target", "2"), "num_target must be '1'"),
    "more features": (param("num_feature", "4294967295"), "num_feature must be '3'"),
    "a base of letters": (param("base_score", "[x]"), "base_score must be a finite number"),
    "a base that is a number": (param("base_score", 0.5), "base_score must be a finite number"),
    "a base that is a list": (param("base_score", ["0.5"]), "base_score must be a finite number"),
    "a base with one bracket": (param("base_score", "[0.5"), "base_score must be a finite number"),
    "a base with the other bracket": (param("base_score", "x0.5]"), "base_score must be a finite number"),
    "a base with a bracket and a letter": (param("base_score", "[0.5x"), "base_score must be a finite number"),
    "a base beyond": (param("base_score", "[1E39]"), "base_score must be a finite number"),
    "trees of another number": (
        forest("gbtree_model_param", {"num_parallel_tree": "1", "num_trees": "2147483647"}),
        "num_trees must be 4; got '2147483647'",
    ),
    "parallel trees beyond": (
        forest("gbtree_model_param", {"num_parallel_tree": "2000000000", "num_trees": "4"}),
        "num_parallel_tree must be from 1",
    ),
    "groups of trees": (forest("tree_info", [0, 0, 0, 7]), "tree_info must be from 0 to 0"),
    "groups of trees missing": (forest("tree_info", [0]), "tree_info must have 4 entries; it has 1"),
    "rounds beyond": (forest("iteration_indptr", [0, 1, 2, 3, 99]), "iteration_indptr must be from 0 to 4"),
    "rounds that go back": (forest("iteration_indptr", [0, 3, 1, 4]), "iteration_indptr must ascend from 0 to 4"),
    "rounds that begin late": (forest("iteration_indptr", [1, 2, 3, 4]), "iteration_indptr must ascend from 0 to 4"),
    "rounds that end early": (forest("iteration_indptr", [0, 1, 2, 3]), "iteration_indptr must ascend from 0 to 4"),
    "rounds of no trees": (forest("iteration_indptr", [0, 0, 2, 4]), "iteration_indptr must ascend from 0 to 4"),
    "rounds in rounds": (forest("iteration_indptr", [[0], [4]]), "iteration_indptr must be numbers"),
    "no rounds": (forest("iteration_indptr", []), "iteration_indptr must ascend"),
    "an id of another": (tree("id", 1), "tree 0 has the id 1"),
    "an id that is a truth": (tree("id", False), "tree 0 has the id False"),
    "no nodes": (
        lambda model: [
            change(model) for change in (tree_param("num_nodes", "0"), *(tree(key, []) for key in (*FLOATS, *WHOLES)))
        ],
        "tree 0 must have 0 nodes",
    ),
    "nodes of another number": (
        tree("tree_param", {"num_deleted": "0", "num_feature": "3", "num_nodes": "999999", "size_leaf_vector": "1"}),
        "tree 0 must have .* nodes; got '999999'",
    ),
    "leaves that are vectors": (tree_param("size_leaf_vector", "9"), "tree 0 must have one value per leaf"),
    "a feature beyond": (tree("split_indices", (0, 3)), "tree 0 splits a feature outside the 3"),
    "a feature of 400 digits": (tree("split_indices", (0, 10**399)), "a whole number has 400 digits"),
    "a child beyond": (tree("left_children", (0, 10**6)), "tree 0 has a child outside"),
    "a child just beyond": (tree("left_children", (0, 15)), "tree 0 has a child outside its 15 nodes"),
    "a child below": (tree("left_children", (0, -2)), "tree 0 has a child outside"),
    "a loop": (tree("left_children", (1, 0)), "tree 0 reaches a node twice"),
    "a shared child": (tree("left_children", (0, 2)), "tree 0 reaches a node twice"),
    "one child": (tree("right_children", (0, -1)), "tree 0 has a node with one child"),
    "nodes cut off": (
        lambda model: (tree("left_children", (1, -1))(model), tree("right_children", (1, -1))(model)),
        "tree 0 has nodes that nothing leads to",
    ),
    "a root with a parent": (tree("parents", (0, 0)), "tree 0 has a root with a parent"),
    "a parent beyond": (tree("parents", (1, 10**9)), "tree 0 has a parent outside"),
    "another parent": (tree("parents", (3, 2)), "tree 0 has a node whose parent is another"),
    "arrays too short": (tree("split_conditions", [0.5]), "split_conditions of tree 0 must have .* entries; it has 1"),
    "a condition that is none": (tree("split_conditions", (0, float("nan"))), "must be finite numbers"),
    "a condition beyond": (tree("split_conditions", (0, 1e39)), "must be finite numbers"),
    "a condition of text": (tree("split_conditions", (0, "1")), "must be numbers"),
    "a way that is none": (tree("default_left", (0, 2)), "default_left of tree 0 must be from 0 to 1"),
    "a type that is none": (tree("split_type", (0, 2)), "split_type of tree 0 must be from 0 to 1"),
    "categories without sets": (tree("split_type", (0, 1)), "categories_nodes of tree 0 must be those of split_type"),
    "base that is neither": (param("boost_from_average", "2"), "boost_from_average must be '0' or '1'"),
    "settings of several words": (settings(lambdarank_unbiased="0 1"), "settings in one word each"),
    "a setting's name of several words": (settings(**{"a b": "0"}), "settings in one word each"),
    "settings of numbers": (settings(lambdarank_unbiased=0), "settings in one word each"),
    "settings that are a list": (
        learner("objective", {"name": "rank:ndcg", "lambdarank_param": ["a"]}),
        "settings in one word each",
    ),
    "one bias list": (biases(**{"ti+": [1.0]}), "ti. and tj- go together"),
    "bias lists of two lengths": (biases(**{"ti+": [1.0], "tj-": [1.0, 1.0]}), "of one length"),
    "weights inside dart": (
        learner(
            "gradient_booster",
            {
                "name": "dart",
                "gbtree": {"name": "gblinear", "model": {"weights": [0.0] * 4, "boosted_rounds": 1}},
                "weight_drop": [],
            },
        ),
        "the booster inside dart must be gbtree",
    ),
    "trees that are an object": (forest("trees", {}), "trees must be a list"),
    "trees that are a text": (forest("trees", "1234"), "trees must be a list"),
    "groups of trees that are a text": (forest("tree_info", "0000"), "tree_info must be a list"),
    "groups of trees that are a number": (forest("tree_info", 0), "tree_info must be a list"),
    "parallel trees of a number": (
        forest("gbtree_model_param", {"num_parallel_tree": 1, "num_trees": "4"}),
        "num_parallel_tree must be a whole number; got 1",
    ),
    "parallel trees of letters": (
        forest("gbtree_model_param", {"num_parallel_tree": "one", "num_trees": "4"}),
        "num_parallel_tree must be a whole number; got 'one'",
    ),
    "parallel trees of another script": (
        forest("gbtree_model_param", {"num_parallel_tree": "\u0661", "num_trees": "4"}),
        "num_parallel_tree must be a whole number",
    ),
    "features of another number": (tree_param("num_feature", "4"), "tree 0 must have 3 features"),
    "deleted nodes that are there": (tree_param("num_deleted", "1"), "tree 0 has 0 nodes .*; it says 1"),
    "half a feature": (tree("split_indices", (0, 0.5)), "split_indices of tree 0 must be whole numbers"),
    "arrays in arrays": (tree("left_children", [[1], [2]]), "tree 0 must have 2 nodes|must be numbers"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_what_would_mislead_xgboost_is_told(damage: Callable[[dict[str, Any]], Any], message: str) -> None:
    model = model_of("xgboost")
    damage(model)
    with pytest.raises(ValueError, match=message):
        checked_model(json.dumps(model), 3)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: (
            settings(lambdarank_unbiased="1")(model),
            biases(**{"ti+": [1.0, 0.5], "tj-": [1.0, 0.25]})(model),
        ),
        lambda model: (
            forest("gbtree_model_param", {"num_parallel_tree": "4", "num_trees": "4"})(model),
            forest("iteration_indptr", [0, 4])(model),
        ),
        param("base_score", "-1.5e-3"),
        param("base_score", "3.4028235E38"),
    ],
    ids=["bias lists", "parallel trees", "a base without brackets", "the largest base"],
)
def test_what_xgboost_writes_passes(change: Callable[[dict[str, Any]], Any]) -> None:
    model = model_of("xgboost")
    change(model)
    assert json.loads(checked_model(json.dumps(model), 3)) == model


def test_the_best_round_says_which_trees_count() -> None:
    model = model_of("xgboost")
    for best in range(4):
        learner("attributes", {"best_iteration": str(best)})(model)
        assert json.loads(checked_model(json.dumps(model), 3)) == model
        stored = read_model(json.dumps(model))
        assert (len(stored.trees), stored.left_out) == (best + 1, 3 - best)


def with_a_deleted_node(**values: Any) -> dict[str, Any]:
    """The model with one more node in its first tree, as XGBoost leaves those that pruning took away."""
    model = model_of("xgboost")
    first = model["learner"]["gradient_booster"]["model"]["trees"][0]
    node = {"left_children": -1, "right_children": -1, "parents": 3, "split_indices": 2**31 - 1, "default_left": 1}
    for key in (*FLOATS, *WHOLES):
        first[key].append((node | values).get(key, 0))
    first["tree_param"] |= {"num_nodes": str(len(first["parents"])), "num_deleted": "1"}
    return model


def test_a_node_that_pruning_took_away_passes() -> None:
    model = with_a_deleted_node()
    assert json.loads(checked_model(json.dumps(model), 3)) == model


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"split_indices": 0}, "tree 0 has nodes that nothing leads to"),
        ({"default_left": 0}, "tree 0 has nodes that nothing leads to"),
        ({"left_children": 7, "right_children": 8}, "tree 0 has nodes that nothing leads to"),
        ({"parents": -1}, "tree 0 has a parent outside its nodes"),
        ({"parents": 16}, "tree 0 has a parent outside its nodes"),
    ],
)
def test_a_node_that_nothing_leads_to_is_marked_and_leads_nowhere(values: dict[str, Any], message: str) -> None:
    with pytest.raises(Damaged, match=message):
        checked_model(json.dumps(with_a_deleted_node(**values)), 3)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("categories_nodes", [0], "categories_nodes of tree 0"),
        ("categories_sizes", [99, 1], "do not follow|as many as"),
        ("categories_sizes", [0, 12], "categories_sizes of tree 0 must be one per node"),
        ("categories_segments", [0, 10**12], "categories_segments of tree 0 must be from"),
        ("categories_segments", [5, 0], "categories_segments of tree 0 do not follow"),
        ("categories", [0], "as many as their sizes say"),
        ("categories", (0, 2**24), "a category above 16777215"),
        ("categories", (0, -1), "categories of tree 0 must be from 0"),
    ],
)
def test_sets_of_categories_have_bounds(key: str, value: Any, message: str) -> None:
    model = model_of("xgboost_categorical")
    tree(key, value)(model)
    with pytest.raises(Damaged, match=message):
        checked_model(json.dumps(model), 3)


def test_few_words_do_not_ask_for_much_memory() -> None:
    model = model_of("xgboost_categorical")
    forest_model = model["learner"]["gradient_booster"]["model"]
    first = forest_model["trees"][0]
    first["categories"] = [2**24 - 1] * len(first["categories"])
    forest_model["trees"] = [first | {"id": number} for number in range(40)]
    forest_model["gbtree_model_param"]["num_trees"] = "40"
    forest_model["tree_info"] = [0] * 40
    forest_model["iteration_indptr"] = list(range(41))
    with pytest.raises(Damaged, match="take more than 1073741824 bits"):
        checked_model(json.dumps(model), 3)


def test_there_are_no_more_sets_of_categories_than_splits_by_them() -> None:
    model = model_of("xgboost_categorical")
    first = model["learner"]["gradient_booster"]["model"]["trees"][0]
    first["categories_sizes"].append(1)
    first["categories_segments"].append(len(first["categories"]))
    first["categories"].append(0)
    with pytest.raises(Damaged, match="categories_sizes of tree 0 must be one per node"):
        checked_model(json.dumps(model), 3)


def test_a_leaf_does_not_split_by_categories() -> None:
    model = model_of("xgboost_categorical")
    first = model["learner"]["gradient_booster"]["model"]["trees"][0]
    leaf = first["left_children"].index(-1)
    first["split_type"][leaf] = 1
    first["categories_nodes"].append(leaf)
    first["categories_sizes"].append(1)
    first["categories_segments"].append(len(first["categories"]))
    first["categories"].append(0)
    with pytest.raises(Damaged, match="tree 0 has a leaf that splits by categories"):
        checked_model(json.dumps(model), 3)


# What XGBoost writes for columns of texts ("a", "bc"), of none and of the numbers 7 and 5.
LABELS: dict[str, Any] = {
    "enc": [{"offsets": [0, 1, 3], "values": [97, 98, 99]}, {"type": 9, "values": []}, {"type": 13, "values": [7, 5]}],
    "feature_segments": [0, 2, 2, 4],
    "sorted_idx": [0, 1, 1, 0],
}


def with_column(number: int, **values: Any) -> dict[str, Any]:
    columns = [column | (values if at == number else {}) for at, column in enumerate(LABELS["enc"])]
    return LABELS | {"enc": columns}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS, ""),
        (with_column(2, type=7, values=[0.5, 2]), ""),
        (with_column(0, offsets=[0, 0, 3]), ""),  # an empty text
        (
            {"enc": [{"offsets": [], "values": []}] * 3, "feature_segments": [0, 0, 0, 0], "sorted_idx": []},
            "",
        ),
        (LABELS | {"enc": [5, *LABELS["enc"][1:]]}, "cats of feature 0 must be an object"),
        (LABELS | {"enc": ["offsets", *LABELS["enc"][1:]]}, "cats of feature 0 must be an object"),
        (LABELS | {"enc": LABELS["enc"][:2]}, "cats must be of 3 columns"),
        (LABELS | {"enc": {}}, "cats must be of 3 columns"),
        (LABELS | {"feature_segments": [0, 2, 3, 4]}, "feature_segments must add up"),
        (LABELS | {"feature_segments": []}, "feature_segments must add up"),
        (LABELS | {"enc": [], "sorted_idx": []}, "feature_segments must add up"),
        (LABELS | {"sorted_idx": [0, 0, 1, 0]}, "sorted_idx must be an order"),
        (LABELS | {"sorted_idx": [0, 2, 1, 0]}, "sorted_idx must be an order"),
        (LABELS | {"sorted_idx": [0, 1]}, "sorted_idx must have 4 entries"),
        (with_column(0, offsets=[0, 1, 4]), "cats of feature 0 has offsets that do not fit"),
        (with_column(0, offsets=[1, 1, 3]), "cats of feature 0 has offsets that do not fit"),
        (with_column(0, offsets=[0, 4, 3]), "cats of feature 0 has offsets that do not fit"),
        (with_column(0, values=[97, 98, 128]), "cats of feature 0 must be from -128 to 127"),
        (with_column(2, type=99), "cats of feature 2 has an unknown type"),
        (with_column(2, type="13"), "cats of feature 2 has an unknown type"),
        (with_column(2, type=13.0), "cats of feature 2 has an unknown type"),
        (with_column(1, values=[128]), "cats of feature 1 must be from -128 to 127"),
        (with_column(2, type=7, values=[1e39, 2]), "cats of feature 2 must be finite numbers"),
    ],
)
def test_labels_of_columns_fit_together(labels: dict[str, Any], message: str) -> None:
    model = model_of("xgboost")
    forest("cats", labels)(model)
    if not message:
        assert json.loads(checked_model(json.dumps(model), 3)) == model
        return
    with pytest.raises(Damaged, match=message):
        checked_model(json.dumps(model), 3)


@pytest.mark.parametrize("objective", [{}, {"name": 1}, []])
def test_a_model_to_export_names_its_objective(objective: Any) -> None:
    model = model_of("xgboost")
    assert read_model(json.dumps(model)).objective == "rank:ndcg"
    learner("objective", objective)(model)
    with pytest.raises(Damaged, match="objective must have a name"):
        read_model(json.dumps(model))


@pytest.mark.parametrize("text", ["", "no trees", "[" * 100_000, '{"a": 1, "a": 2}', "{L\x00\x00\x00"])
def test_what_is_no_json_is_told(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        checked_model(text, 3)


def test_the_largest_number_as_xgboost_writes_it() -> None:
    model = model_of("xgboost")
    tree = model["learner"]["gradient_booster"]["model"]["trees"][0]
    tree["split_conditions"][0] = 3.4028235e38
    assert "3.4028235e+38" in checked_model(json.dumps(model), 3)
    tree["split_conditions"][0] = 3.4028237e38
    with pytest.raises(Damaged, match="must be finite numbers"):
        checked_model(json.dumps(model), 3)


def test_children_stand_side_by_side() -> None:
    model = model_of("xgboost")
    tree = model["learner"]["gradient_booster"]["model"]["trees"][0]
    left, right = tree["left_children"], tree["right_children"]
    left[0], right[0] = right[0], left[0]
    with pytest.raises(Damaged, match="side by side"):
        checked_model(json.dumps(model), 3)
