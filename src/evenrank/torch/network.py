"""Multilayer perceptrons trained together: models are an axis of their weights, as they are of scores."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.design_columns import column_scale
from evenrank.extras import require
from evenrank.progress import Progress, warn_interrupted
from evenrank.rankers.row_products import row_products
from evenrank.torch.batches import QueryBatchSampler
from evenrank.torch.losses import Tensor
from evenrank.torch.pull import BatchPull, slope_of

torch: Any = require("torch")


class Networks:
    """Scores of M networks of one shape: standardised features, hidden layers with ReLU, one output.

    Attributes
    ----------
    center, spread : ndarray
        Mean and standard deviation of the features in training, (d,).
    layers : list of tuple
        A weight (M, in, out) and a bias (M, 1, out) for each layer, float32.
    """

    def __init__(self, center: NDArray[Any], spread: NDArray[Any], layers: Sequence[tuple[Tensor, Tensor]]) -> None:
        self.center, self.spread, self.layers = center, spread, list(layers)

    @classmethod
    def fresh(
        cls, data: RankingData, hidden: Sequence[int], models: int, *, seed: int, device: Any = "cpu"
    ) -> Networks:
        """Draw random weights, the same in every model, as torch's Linear does.

        Parameters
        ----------
        data : RankingData
            The training rows, for the scale of their features.
        hidden : sequence of int
            The widths of the hidden layers.
        models : int
            M.
        seed : int
            The seed of the weights.
        device : torch.device or str
            Where the weights are kept.

        Returns
        -------
        Networks
            The untrained networks.
        """
        center, spread = column_scale(data, group_aware=False)
        generator = torch.Generator().manual_seed(seed)
        widths = [data.n_features, *hidden, 1]
        layers = []
        for width, following in pairwise(widths):
            bound = 1 / np.sqrt(max(1, width))
            draws = [torch.rand(1, size, following, generator=generator) for size in (width, 1)]
            layers.append(tuple(((2 * draw - 1) * bound).repeat(models, 1, 1).to(device) for draw in draws))
        return cls(center, spread, layers)

    def parameters(self) -> list[Tensor]:
        """List the weights and biases of all layers."""
        return [part for layer in self.layers for part in layer]

    def scores(self, features: NDArray[Any]) -> Tensor:
        """Score a batch in training, where a row's last digits depend on the other rows.

        Parameters
        ----------
        features : ndarray
            (n, d), in their own units.

        Returns
        -------
        Tensor
            (n, M).
        """
        signal = torch.from_numpy(self._standardised(features)).to(self.layers[0][0].device)
        signal = signal.expand(len(self.layers[0][0]), -1, -1)
        for number, (weight, bias) in enumerate(self.layers):
            signal = torch.baddbmm(bias, torch.relu(signal) if number else signal, weight)
        return signal[:, :, 0].T

    def score_data(self, data: RankingData, columns: Any = slice(None)) -> NDArray[np.float64]:
        """Score all rows, each independently of the others.

        Parameters
        ----------
        data : RankingData
            The rows.
        columns : slice or sequence of int
            Where the features of training are among those of the data.

        Returns
        -------
        ndarray
            (n, M), in stored order.
        """
        out = np.empty((data.n_rows, len(self.layers[0][0])))
        for rows, block in data.blocks():
            out[rows] = self.score_rows(block[:, columns])
        return out

    def score_rows(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """Score some rows, each independently of the others.

        Parameters
        ----------
        features : ndarray
            (n, d), in their own units.

        Returns
        -------
        ndarray
            (n, M).
        """
        layers = [[part.detach().cpu().numpy() for part in layer] for layer in self.layers]
        inputs = self._standardised(features)
        out = np.empty((len(inputs), len(layers[0][0])))
        for model in range(out.shape[1]):
            signal = inputs
            for number, (weight, bias) in enumerate(layers):
                signal = np.maximum(signal, 0) if number else signal
                signal = row_products(signal, weight[model].T) + bias[model]
            out[:, model] = signal[:, 0]
        return out

    def _standardised(self, features: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray((np.asarray(features, np.float64) - self.center) / self.spread).astype(np.float32)

    def one(self, model: int) -> Networks:
        """Copy one of the networks.

        Parameters
        ----------
        model : int
            Its number.

        Returns
        -------
        Networks
            A single network.
        """
        layers = [(weight[[model]].clone(), bias[[model]].clone()) for weight, bias in self.layers]
        return Networks(self.center, self.spread, layers)


def encode(networks: Networks) -> list[dict[str, Any]]:
    """Write a single network's weights for JSON: shapes, and little-endian float32 as base64.

    Parameters
    ----------
    networks : Networks
        The network.

    Returns
    -------
    list of dict
        One entry per layer.
    """
    return [
        {"shape": list(weight.shape[1:])}
        | {
            name: b64encode(part[0].cpu().numpy().astype("<f4").tobytes()).decode()
            for name, part in (("weight", weight), ("bias", bias))
        }
        for weight, bias in networks.layers
    ]


def decode(layers: Any, center: NDArray[np.float64], spread: NDArray[np.float64]) -> Networks:
    """Read the weights that `encode` wrote.

    Parameters
    ----------
    layers : list of dict
        One entry per layer.
    center, spread : ndarray
        Of the features, (d,).

    Returns
    -------
    Networks
        A single network.

    Raises
    ------
    ValueError
        If sizes do not fit or numbers are not finite.
    """
    if not (spread > 0).all():
        raise ValueError("every spread must be above 0")
    width, parts = len(center), []
    for layer in layers if isinstance(layers, list) else []:
        shape = layer.get("shape") if isinstance(layer, dict) else None
        if not isinstance(shape, list) or len(shape) != 2 or not all(type(size) is int and size > 0 for size in shape):
            raise ValueError("a layer's shape must be two whole numbers above 0")
        rows, columns = shape
        if rows != width:
            raise ValueError(f"a layer takes {rows} values and is given {width}")
        weight, bias = _decoded(layer.get("weight"), rows * columns), _decoded(layer.get("bias"), columns)
        parts.append((weight.reshape(1, rows, columns), bias.reshape(1, 1, columns)))
        width = columns
    if width != 1 or not parts:
        raise ValueError("the last layer must have one output")
    return Networks(center, spread, parts)


def _decoded(text: Any, size: int) -> Tensor:
    """Finite numbers from base64, which must be ``size`` of them."""
    try:
        content = b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        content = b""
    if len(content) != 4 * size:
        raise ValueError(f"a layer must hold {size} numbers as base64")
    numbers = np.frombuffer(content, "<f4")
    if not np.isfinite(numbers).all():
        raise ValueError("a weight is not finite")
    return torch.from_numpy(numbers.astype(np.float32))


def train(
    networks: Networks,
    data: RankingData,
    loss: Any,
    alphas: NDArray[np.float64],
    pull: BatchPull | None,
    *,
    learning_rate: float,
    weight_decay: float,
    epochs: int,
    batch_queries: int,
    seed: int,
    progress: Progress | None = None,
) -> int:
    """Train networks by Adam on loss + c·α·Γ, over batches of queries; see `BatchPull`.

    The sum over models is descended. No model shares a weight with another, so each trains as it would alone.

    Parameters
    ----------
    networks : Networks
        The networks, which are changed.
    data : RankingData
        The training rows.
    loss : torch.nn.Module
        The loss.
    alphas : ndarray
        The strength of each model, (M,).
    pull : BatchPull or None
        The fairness term; None leaves it out.
    learning_rate, weight_decay : float
        Adam's.
    epochs, batch_queries, seed : int
        Passes over the rows, queries in a batch, and the seed of their order.
    progress : Callable, optional
        Called with the fraction done.

    Returns
    -------
    int
        The number of batches.
    """
    device = networks.layers[0][0].device
    strength = torch.as_tensor(alphas, dtype=torch.float32, device=device)
    columns = [torch.tensor(values) for values in (data.relevance, data.group.astype(np.int64), data.query_of_row)]
    weights = None if data.sample_weight is None else torch.tensor(data.sample_weight)
    sampler = QueryBatchSampler(data, batch_queries, seed=seed)
    parameters = networks.parameters()
    for parameter in parameters:
        parameter.requires_grad_()
    optimizer = torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=weight_decay)
    taken = 0
    try:
        for _ in range(epochs):
            for rows in sampler:
                scores = networks.scores(data.features[rows])
                relevance, group, qid = (column[rows] for column in columns)
                weight = None if weights is None else weights[rows]
                leaf = scores.detach().requires_grad_()
                slope = slope_of(loss(leaf, relevance.to(device), group, qid, sample_weight=weight), leaf)
                if pull is not None:
                    slope = slope + strength * pull(slope, leaf, rows)
                optimizer.zero_grad()
                scores.backward(slope)
                optimizer.step()
                taken += 1
                if progress is not None:
                    progress(taken / (epochs * len(sampler)))
    except KeyboardInterrupt:
        warn_interrupted(taken, epochs * len(sampler), "batches")
    for parameter in parameters:
        parameter.requires_grad_(False)
    return taken
