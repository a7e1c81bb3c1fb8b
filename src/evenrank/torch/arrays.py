"""Between tensors and numpy's arrays, and a value whose gradient is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.extras import require
from evenrank.torch.losses import Tensor

torch: Any = require("torch")


def as_numpy(values: Tensor) -> NDArray[Any]:
    """Give a tensor's numbers, without a copy where it is on the CPU and of a type that numpy has.

    Parameters
    ----------
    values : Tensor
        Of any device and type; half precision becomes single.

    Returns
    -------
    ndarray
        Of the tensor's shape.
    """
    tensor = values.detach() if values.requires_grad else values
    if not tensor.is_cpu or tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.to("cpu", torch.float32 if tensor.dtype in (torch.bfloat16, torch.float16) else None)
    return np.asarray(tensor.numpy())


def as_tensor(values: NDArray[Any], like: Tensor) -> Tensor:
    """Make a tensor of numbers.

    Parameters
    ----------
    values : ndarray
        The numbers.
    like : Tensor
        The tensor whose type and device it takes.

    Returns
    -------
    Tensor
        Of the numbers' shape.
    """
    if like.dtype == torch.float32:
        values = values.astype(np.float32)  # for less than torch takes
    tensor = torch.from_numpy(values)
    return tensor if tensor.dtype == like.dtype and like.is_cpu else tensor.to(like)


class Known(torch.autograd.Function):  # type: ignore[misc]
    """A value that is computed together with its gradient, which is not differentiated again."""

    @staticmethod
    def forward(context: Any, scores: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        context.gradient = gradient
        return value

    @staticmethod
    def backward(context: Any, above: Tensor) -> tuple[Tensor, None, None]:
        # What refuses a second derivative takes as long as all the rest, so it is there only where one may follow.
        return _scaled_once(context, above) if torch.is_grad_enabled() else _scaled(context, above)


def _scaled(context: Any, above: Tensor) -> tuple[Tensor, None, None]:
    return above * context.gradient, None, None


_scaled_once = torch.autograd.function.once_differentiable(_scaled)
