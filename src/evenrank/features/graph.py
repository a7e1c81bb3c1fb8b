"""A BERT-like encoder as an ONNX graph that computes the first token's hidden state and nothing more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataError
from evenrank.extras import require
from evenrank.features.checkpoint import Checkpoint

OPSET = 20
LARGEST = 2**31 - 2**20  # bytes a protobuf message may have, and room for the graph


class _Graph:
    """Nodes and initializers under construction; each method adds a node and returns the name of its output."""

    def __init__(self) -> None:
        self.onnx = require("onnx")
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.bytes = 0

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        array = np.ascontiguousarray(values, dtype)
        name = f"c{len(self.initializers)}"
        self.bytes += array.nbytes
        if self.bytes > LARGEST:
            raise ConfigError("the model is larger than the 2 GB that one ONNX file can hold. Choose a smaller model.")
        self.initializers.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def __call__(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def linear(self, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        """x Wᵀ + b, the weight as files have it: (out, in)."""
        return str(self("Add", self("MatMul", x, self.constant(weight.T)), self.constant(bias)))

    def norm(self, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32], epsilon: float) -> str:
        scale, shift = self.constant(weight), self.constant(bias)
        return str(self("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon))


def build_graph(model: Checkpoint) -> bytes:
    """Build the encoder as a serialised ONNX model.

    Inputs are ``input_ids``, ``attention_mask`` and, where the model has them, ``token_type_ids``, (batch, tokens)
    int64; the output ``first`` is (batch, width) float32. In the last layer only the first token has a query, so apart
    from keys and values that layer is computed for one token per text: the same numbers for less work.

    Parameters
    ----------
    model : Checkpoint
        The sizes and tensors.

    Returns
    -------
    bytes
        The model, ready for onnxruntime.
    """
    graph = _Graph()
    x, mask, width = _embeddings(graph, model)
    if width % model.heads:
        raise ConfigError(f"{model.folder}: {model.heads} attention heads must divide the hidden size {width}.")
    for layer in range(model.layers):
        x = _layer(graph, model, layer, x, mask, width)
    graph.nodes.append(graph.onnx.helper.make_node("Reshape", [x, graph.integers(-1, width)], ["first"]))
    helper, kinds = graph.onnx.helper, graph.onnx.TensorProto
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if len(_types(model)) > 1 else [])]
    encoder = helper.make_graph(
        graph.nodes,
        "encoder",
        [helper.make_tensor_value_info(name, kinds.INT64, ["batch", "tokens"]) for name in names],
        [helper.make_tensor_value_info("first", kinds.FLOAT, ["batch", width])],
        graph.initializers,
    )
    # IR 9 is the oldest that has the opset's operators, so that older runtimes read it too.
    wrapped = helper.make_model(encoder, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    return bytes(wrapped.SerializeToString())


def _types(model: Checkpoint) -> NDArray[np.float32]:
    """One vector for the first text and one for the second; RoBERTa has one for both, DistilBERT none."""
    name = "embeddings.token_type_embeddings.weight"
    return model.tensor(name) if name in model.names else np.zeros((0, 1), np.float32)


def _embeddings(graph: _Graph, model: Checkpoint) -> tuple[str, str, int]:
    """The first layer's input, the mask to add to attention, and the hidden size."""
    words = model.tensor("embeddings.word_embeddings.weight")
    types = _types(model)
    positions = model.tensor("embeddings.position_embeddings.weight")[model.first_position :]
    if len(types) == 1:
        positions = positions + types
    tokens = graph("Shape", "input_ids", start=1, end=2)
    place = graph("Slice", graph.constant(positions), graph.integers(0), tokens, graph.integers(0))
    x = graph("Add", graph("Gather", graph.constant(words), "input_ids"), place)
    if len(types) > 1:
        x = graph("Add", x, graph("Gather", graph.constant(types), "token_type_ids"))
    name = "embeddings.LayerNorm"
    x = graph.norm(x, model.tensor(f"{name}.weight"), model.tensor(f"{name}.bias"), model.epsilon)
    width = words.shape[1]
    if "embeddings_project.weight" in model.names:
        weight = model.tensor("embeddings_project.weight")
        x, width = graph.linear(x, weight, model.tensor("embeddings_project.bias")), weight.shape[0]
    attended = graph("Cast", "attention_mask", to=graph.onnx.TensorProto.FLOAT)
    absent = graph("Mul", graph("Sub", graph.constant(1.0), attended), graph.constant(np.finfo(np.float32).min))
    return x, graph("Unsqueeze", absent, graph.integers(1, 2)), width


def _layer(graph: _Graph, model: Checkpoint, layer: int, x: str, mask: str, width: int) -> str:
    size = width // model.heads
    split = graph.integers(0, 0, model.heads, size)
    asking = graph("Slice", x, graph.integers(0), graph.integers(1), graph.integers(1)) if _last(model, layer) else x

    def heads(name: str, source: str, axes: list[int], scale: float = 1.0) -> str:
        weight, bias = model.part(name, layer)
        if weight.shape != (width, width):
            raise DataError(f"{model.folder}: layer {layer}'s {name} must be {width} × {width}; got {weight.shape}.")
        projected = graph.linear(source, weight * np.float32(scale), bias * np.float32(scale))
        return str(graph("Transpose", graph("Reshape", projected, split), perm=axes))

    query = heads("query", asking, [0, 2, 1, 3], size**-0.5)
    weights = graph("Add", graph("MatMul", query, heads("key", x, [0, 2, 3, 1])), mask)
    mixed = graph("MatMul", graph("Softmax", weights, axis=-1), heads("value", x, [0, 2, 1, 3]))
    joined = graph("Reshape", graph("Transpose", mixed, perm=[0, 2, 1, 3]), graph.integers(0, 0, width))
    added = graph("Add", graph.linear(joined, *model.part("mixed", layer)), asking)
    x = graph.norm(added, *model.part("mixed_norm", layer), model.epsilon)
    inner = graph.linear(x, *model.part("inner", layer))
    inner = graph("Relu", inner) if model.activation == "relu" else graph("Gelu", inner, approximate=model.activation)
    added = graph("Add", graph.linear(inner, *model.part("outer", layer)), x)
    return graph.norm(added, *model.part("outer_norm", layer), model.epsilon)


def _last(model: Checkpoint, layer: int) -> bool:
    return layer == model.layers - 1
