"""A transformer's folder (config.json, model.safetensors) brought to one set of names, whatever its family."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataError
from evenrank.extras import require
from evenrank.io.files import unreadable

# Our name of a part of a layer → its name in the file. A part has a weight and a bias.
_BERT_LAYER = {
    "query": "encoder.layer.{}.attention.self.query",
    "key": "encoder.layer.{}.attention.self.key",
    "value": "encoder.layer.{}.attention.self.value",
    "mixed": "encoder.layer.{}.attention.output.dense",
    "mixed_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "inner": "encoder.layer.{}.intermediate.dense",
    "outer": "encoder.layer.{}.output.dense",
    "outer_norm": "encoder.layer.{}.output.LayerNorm",
}
_DISTIL_LAYER = {
    "query": "transformer.layer.{}.attention.q_lin",
    "key": "transformer.layer.{}.attention.k_lin",
    "value": "transformer.layer.{}.attention.v_lin",
    "mixed": "transformer.layer.{}.attention.out_lin",
    "mixed_norm": "transformer.layer.{}.sa_layer_norm",
    "inner": "transformer.layer.{}.ffn.lin1",
    "outer": "transformer.layer.{}.ffn.lin2",
    "outer_norm": "transformer.layer.{}.output_layer_norm",
}
_BERT_SIZES = ("num_hidden_layers", "num_attention_heads", "hidden_act")
ACTIVATIONS = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "relu": "relu"}
_OLD_NAMES = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}


@dataclass(frozen=True)
class Family:
    """How a family of models writes its sizes and names, and where its positions start.

    Attributes
    ----------
    prefix : str
        What names of tensors begin with in checkpoints with a task's head.
    layer : dict
        Our name of a part of a layer → its name in the file.
    sizes : tuple of str
        The names of the number of layers, of heads and of the activation in config.json.
    after_padding : bool
        Whether positions start after the padding token's number, as in RoBERTa.
    """

    prefix: str
    layer: dict[str, str]
    sizes: tuple[str, str, str] = _BERT_SIZES
    after_padding: bool = False


FAMILIES = {
    "bert": Family("bert.", _BERT_LAYER),
    "electra": Family("electra.", _BERT_LAYER),
    "roberta": Family("roberta.", _BERT_LAYER, after_padding=True),
    "xlm-roberta": Family("roberta.", _BERT_LAYER, after_padding=True),
    "camembert": Family("roberta.", _BERT_LAYER, after_padding=True),
    "distilbert": Family("distilbert.", _DISTIL_LAYER, ("n_layers", "n_heads", "activation")),
}


@dataclass(frozen=True)
class Checkpoint:
    """A model's sizes and its tensors.

    Attributes
    ----------
    folder : Path
        Where it was read.
    family : Family
        The family of models it is of.
    layers, heads : int
        The number of layers, and of attention heads per layer.
    activation : str
        The approximation of GELU ("none" or "tanh"), or "relu".
    epsilon : float
        Of the layer norms.
    first_position : int
        The row of the position embeddings where positions start.
    tensor : callable
        Name of a tensor in the family's terms → the tensor, float32.
    names : frozenset of str
        The tensors that there are.
    """

    folder: Path
    family: Family
    layers: int
    heads: int
    activation: str
    epsilon: float
    first_position: int
    tensor: Callable[[str], NDArray[np.float32]]
    names: frozenset[str]

    def part(self, name: str, layer: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Give the weight and the bias of a part of a layer.

        Parameters
        ----------
        name : str
            One of the names of `Family.layer`.
        layer : int
            The layer's number, from 0.
        """
        full = self.family.layer[name].format(layer)
        return self.tensor(f"{full}.weight"), self.tensor(f"{full}.bias")


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read config.json and model.safetensors.

    Parameters
    ----------
    folder : Path
        The model's folder.

    Returns
    -------
    Checkpoint
        Sizes and tensors.

    Raises
    ------
    ConfigError
        For a model of a family or a kind that is not known.
    DataError
        For a file that is damaged or lacks a tensor.
    """
    config = load_config(folder)
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ConfigError(
            f"{folder}: model_type must be one of {', '.join(FAMILIES)}; got {kind!r}. "
            "Export the model to ONNX and put model.onnx in the folder."
        )
    family = FAMILIES[kind]
    layers, heads, activation = (config.get(name) for name in family.sizes)
    if type(layers) is not int or type(heads) is not int or min(layers, heads) < 1:
        raise ConfigError(f"{folder}: config.json must have {family.sizes[0]} and {family.sizes[1]} of at least 1.")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ConfigError(
            f"{folder}: {family.sizes[2]} must be one of {', '.join(ACTIVATIONS)}; got {activation!r}. "
            "Export the model to ONNX and put model.onnx in the folder."
        )
    epsilon, padding = config.get("layer_norm_eps", 1e-12), config.get("pad_token_id")
    if type(epsilon) not in (int, float) or not 0 < epsilon < 1:
        raise ConfigError(f"{folder}: layer_norm_eps must be a number between 0 and 1; got {epsilon!r}.")
    if padding is not None and (type(padding) is not int or padding < 0):
        raise ConfigError(f"{folder}: pad_token_id must be a whole number of at least 0; got {padding!r}.")
    positions = config.get("position_embedding_type", "absolute")
    if positions not in ("absolute", None) or config.get("is_decoder"):
        kind_found = "a decoder" if config.get("is_decoder") else f"{positions} positions"
        raise ConfigError(
            f"{folder}: the model must be an encoder with absolute positions; it has {kind_found}. "
            "Export the model to ONNX and put model.onnx in the folder."
        )
    tensors = _tensors(folder / "model.safetensors", family.prefix)

    def tensor(name: str) -> NDArray[np.float32]:
        old = next((name.replace(new, past) for new, past in _OLD_NAMES.items() if name.endswith(new)), name)
        values = tensors.get(name, tensors.get(old))
        if values is None:
            raise DataError(f"{folder}: model.safetensors lacks the tensor {name!r} that a {kind} model has.")
        if not np.isfinite(values).all():
            raise DataError(f"{folder}: the tensor {name!r} must hold finite numbers; it does not. Download it again.")
        return np.ascontiguousarray(values, np.float32)

    return Checkpoint(
        folder,
        family,
        layers,
        heads,
        ACTIVATIONS[activation],
        float(epsilon),
        (1 if padding is None else padding) + 1 if family.after_padding else 0,
        tensor,
        frozenset(tensors),
    )


def load_config(folder: Path, name: str = "config.json") -> dict[str, Any]:
    """Read a JSON object from the model's folder.

    Parameters
    ----------
    folder : Path
        The model's folder.
    name : str
        The file in it.

    Raises
    ------
    DataError
        The file cannot be read, or holds no object.
    """
    path = folder / name
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not valid JSON ({error}).") from None
    if not isinstance(content, dict):
        raise DataError(f"{path}: must be an object; got {type(content).__name__}.")
    return content


def _tensors(path: Path, prefix: str) -> dict[str, NDArray[Any]]:
    """The file's tensors without the prefix that checkpoints with a task's head have."""
    numpy = require("safetensors.numpy")
    try:
        loaded = numpy.load_file(path)
    except OSError as error:
        raise unreadable(path, error) from None
    except Exception as error:
        raise DataError(f"{path}: cannot be read as safetensors ({error}). Download it again.") from None
    return {name.removeprefix(prefix): tensor for name, tensor in loaded.items()}
