"""Models as ONNX graphs, written operator by operator, and run by onnxruntime itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.export.model import Forest, Linear, Network, Scorer
from evenrank.extras import require

EXTRA = "onnx"
FEATURES, OFFSET, SCORE = "features", "group_offset", "score"
OPSET, TREES_OPSET, IR = 18, 5, 10  # the first with the TreeEnsemble operator
AT_MOST, SUM, AS_IT_IS = 0, 1, 0  # the operator's numbers for x ≤ split, adding up, and nothing after it


class _Graph:
    """Operators and numbers, each with a name of its own."""

    def __init__(self) -> None:
        self.onnx = require("onnx", extra=EXTRA)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def __call__(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def constant(self, values: Any) -> str:
        name = f"number_{len(self.initializers)}"
        self.initializers.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def tensor(self, values: NDArray[Any]) -> Any:
        return self.onnx.numpy_helper.from_array(np.ascontiguousarray(values))


def graph_of(scorer: Scorer, *, with_offset: bool, notes: Mapping[str, str]) -> bytes:
    """Write a model as an ONNX graph.

    Its input ``features``, (n, d), is 32-bit with NaN for a missing value; its output ``score``, (n,), is 64-bit.

    Parameters
    ----------
    scorer : Forest, Linear or Network
        The model.
    with_offset : bool
        Add an input ``group_offset``, (n,), 64-bit: a number per item that is added to its score.
    notes : mapping of str to str
        What the file says of itself.

    Returns
    -------
    bytes
        The file.
    """
    graph = _Graph()
    onnx = graph.onnx
    kinds = onnx.TensorProto
    wide = graph("Cast", FEATURES, to=kinds.DOUBLE)
    if isinstance(scorer, Forest):
        score = graph("Add", _trees(graph, scorer, wide), graph.constant(np.float64(scorer.base)))
    elif isinstance(scorer, Linear):
        known = _zero_for_missing(graph, wide)
        product = graph("MatMul", known, graph.constant(scorer.coef[:, None].astype(np.float64)))
        score = graph("Add", product, graph.constant(np.float64(scorer.intercept)))
    else:
        score = _network(graph, scorer, _zero_for_missing(graph, wide))
    score = graph("Reshape", score, graph.constant(np.array([-1])))
    if with_offset:
        score = graph("Add", score, OFFSET)
    graph.nodes.append(onnx.helper.make_node("Identity", [score], [SCORE]))
    inputs = [onnx.helper.make_tensor_value_info(FEATURES, kinds.FLOAT, ["items", len(scorer.features)])]
    if with_offset:
        inputs.append(onnx.helper.make_tensor_value_info(OFFSET, kinds.DOUBLE, ["items"]))
    output = onnx.helper.make_tensor_value_info(SCORE, kinds.DOUBLE, ["items"])
    whole = onnx.helper.make_graph(graph.nodes, "ranker", inputs, [output], graph.initializers)
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", TREES_OPSET)]
    model = onnx.helper.make_model(whole, opset_imports=opsets, ir_version=IR, producer_name="evenrank")
    onnx.helper.set_model_props(model, dict(notes))
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def run(definition: bytes, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Score rows with onnxruntime.

    Parameters
    ----------
    definition : bytes
        The file.
    values : ndarray
        Features, (n, d); one column more is the ``group_offset`` of a graph that has that input.

    Returns
    -------
    ndarray
        (n,).
    """
    runtime = require("onnxruntime", extra=EXTRA)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(definition, options, providers=["CPUExecutionProvider"])
    with_offset = len(session.get_inputs()) > 1
    features = values[:, :-1] if with_offset else values
    with np.errstate(over="ignore"):
        given = {FEATURES: features.astype(np.float32)} | ({OFFSET: values[:, -1]} if with_offset else {})
    return np.asarray(session.run([SCORE], given)[0])


def _zero_for_missing(graph: _Graph, features: str) -> str:
    return graph("Where", graph("IsNaN", features), graph.constant(np.float64(0)), features)


def _trees(graph: _Graph, forest: Forest, features: str) -> str:
    """One TreeEnsemble; a tree of one leaf becomes a split with that leaf on both sides."""
    is_leaf = forest.left < 0
    alone = forest.roots[is_leaf[forest.roots]]
    leaves = np.flatnonzero(is_leaf)
    nodes = np.sort(np.concatenate([forest.inner, alone]))
    # A node's number among the nodes, a leaf's among the leaves.
    number = np.zeros(len(forest.left), np.int64)
    number[nodes] = np.arange(len(nodes))
    among_leaves = np.zeros(len(forest.left), np.int64)
    among_leaves[leaves] = np.arange(len(leaves))
    left, right = (np.where(is_leaf[nodes], nodes, children[nodes]) for children in (forest.left, forest.right))

    def child(ends: NDArray[np.int64]) -> list[int]:
        return np.where(is_leaf[ends], among_leaves[ends], number[ends]).tolist()  # type: ignore[no-any-return]

    return graph(
        "TreeEnsemble",
        features,
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function=SUM,
        post_transform=AS_IT_IS,
        tree_roots=number[forest.roots].tolist(),
        nodes_modes=graph.tensor(np.full(len(nodes), AT_MOST, np.uint8)),
        nodes_featureids=forest.feature[nodes].tolist(),
        nodes_splits=graph.tensor(forest.at_most[nodes].astype(np.float64)),
        nodes_truenodeids=child(left),
        nodes_trueleafs=is_leaf[left].astype(int).tolist(),
        nodes_falsenodeids=child(right),
        nodes_falseleafs=is_leaf[right].astype(int).tolist(),
        nodes_missing_value_tracks_true=forest.missing_left[nodes].astype(int).tolist(),
        leaf_targetids=[0] * len(leaves),
        leaf_weights=graph.tensor(forest.value[leaves]),
    )


def _network(graph: _Graph, network: Network, features: str) -> str:
    """Standardised in 64 bits and then 32-bit, as in training."""
    centered = graph("Sub", features, graph.constant(network.center.astype(np.float64)))
    signal = graph("Div", centered, graph.constant(network.spread.astype(np.float64)))
    signal = graph("Cast", signal, to=graph.onnx.TensorProto.FLOAT)
    for number, (weight, bias) in enumerate(network.layers):
        signal = graph("Relu", signal) if number else signal
        signal = graph("Add", graph("MatMul", signal, graph.constant(weight)), graph.constant(bias))
    return graph("Cast", signal, to=graph.onnx.TensorProto.DOUBLE)
