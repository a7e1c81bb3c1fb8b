"""The exact solver's core: what is left of a point after its projection onto a zonotope, for many boxes at once.

    minimise  ½‖x − y‖² + Σ_j β_j |F_j · x|      ⇔      minimise  ½‖y − Fᵀ(β∘u)‖²  over  u ∈ [−1, 1]^J,

with x = y − Fᵀ(β∘u). J is 1 or 2 for the named notions with two groups, and the number of queries in the per-query
scope. An interior-point method finds which |F_j · x| vanish; solving the linear system of that set then gives the
minimiser to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_ELEMENTS = 1 << 21
ITERATIONS = 80
POLISH_ROUNDS = 500
NEAR, NEAR_ROUNDS = 1e-5, 100
FAR, FAINT = 1e3, 1e-20  # boxes that large or small, in units of what they act on, are brought to size or set aside


def solve(
    F: NDArray[np.float64], y: NDArray[np.float64], beta: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute minimisers x (m, r) and multipliers u (m, J).

    Parameters
    ----------
    F : ndarray
        (J, r), or (m, J, r) if the models differ in it.
    y : ndarray
        (r,) or (m, r).
    beta : ndarray
        (m, J), at least 0; `saturation` says how much of a huge one matters.

    Returns
    -------
    tuple of ndarray
        x and u.
    """
    models, J = beta.shape
    if F.ndim == 2 and J > 2:
        left, size, right = np.linalg.svd(F, full_matrices=False)
        rank = int((size > max(F.shape) * np.finfo(float).eps * size[0]).sum())
        if 0 < rank < min(F.shape):
            # G groups have G(G−1)/2 contrasts in G−1 directions, and x differs from y in these alone.
            y = np.broadcast_to(y, (models, F.shape[1]))
            inside = y @ right[:rank].T
            moved, u = solve(left[:, :rank] * size[:rank], inside, beta)
            return y + (moved - inside) @ right[:rank], u
    r = F.shape[-1]
    y = np.broadcast_to(y, (models, r))
    x, u = y.copy(), np.zeros((models, J))
    reach = (beta * np.linalg.norm(F, axis=-1)).max(axis=1, initial=0)
    faint = (reach > 0) & (reach <= FAINT * np.linalg.norm(y, axis=1))
    # Such a box moves no digit of x.
    u[faint] = np.sign(_apply(F if F.ndim == 2 else F[faint], y[faint])) * (beta[faint] > 0)
    active = np.flatnonzero((reach > 0) & ~faint)
    step = max(1, MAX_ELEMENTS // max(1, J * r))
    for start in range(0, len(active), step):
        part = active[start : start + step]
        G = beta[part][:, :, None] * (F if F.ndim == 2 else F[part])
        length = np.linalg.norm(y[part], axis=1)
        some = (length > 0) & (np.abs(G).max(axis=(1, 2)) > 0)
        part, G, length = part[some], G[some], length[some]
        guess = _interior_point(G / length[:, None, None], y[part] / length[:, None])
        u[part], x[part] = _polish(G, y[part], guess)
    return x, u


def saturation(F: NDArray[np.float64], y: NDArray[np.float64], beta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute how much of each model's box matters, (m,) in [0, 1]: ``beta`` times this has the same minimiser.

    Where v solves Fᵀv = y on the span of F's rows, every box that holds v makes all |F_j · x| vanish, and the minimiser
    is the same for all of them. One of a few times |v| stands for the largest, whose squares would overflow.
    """
    y = np.broadcast_to(y, (len(beta), F.shape[-1]))
    share = np.ones(len(beta))
    size = np.linalg.norm(F, axis=-1)
    far = np.flatnonzero((beta * (size / FAR)).max(axis=1, initial=0) > np.linalg.norm(y, axis=1))
    if not len(far):
        return share
    shared = F.ndim == 2
    size = np.where(size > 0, size, 1.0) if shared else np.where(size[far] > 0, size[far], 1.0)
    inverse = np.linalg.pinv(np.swapaxes((F if shared else F[far]) / size[..., None], -1, -2), rcond=1e-12)
    needed = np.abs(_apply(inverse, y[far])) / size
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(needed > 0, needed / beta[far], 0.0).max(axis=1)
    share[far] = np.minimum(1.0, 4 * ratio)
    return share


def _interior_point(G: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """u ∈ [−1, 1]^J minimising ½‖y − Gᵀu‖², bounds set where they hold, by Mehrotra's predictor and corrector."""
    result = np.zeros(G.shape[:2])
    z = _apply(G, y)
    level = np.abs(z).max(axis=1, keepdims=True)
    todo = np.flatnonzero(level[:, 0] > 0)
    G, y, z, level = G[todo], y[todo], z[todo], level[todo]
    gram = G @ G.transpose(0, 2, 1) if G.shape[1] <= G.shape[2] else None
    # Parallel rows make G Gᵀ singular; this much curvature, relative to it, keeps the system solvable.
    floor = 1e-14 * np.maximum(level, (G * G).sum(axis=2).max(axis=1, keepdims=True))
    u = np.zeros_like(z)
    # Multipliers and room of the upper and lower bound, kept apart from u so that rounding never makes them 0.
    pull = np.stack([np.maximum(z, 0), np.maximum(-z, 0)]) + level
    room = np.ones_like(pull)
    sign = np.array([1.0, -1.0])[:, None, None]
    for iteration in range(ITERATIONS):
        residual = _apply(G, y - _apply_t(G, u)) - pull[0] + pull[1]
        gap = (pull * room).mean(axis=(0, 2))[:, None]
        done = (gap <= 1e-13 * level)[:, 0]
        if done.any() or iteration == ITERATIONS - 1:
            done |= iteration == ITERATIONS - 1
            upper, lower = pull[:, done] / level[done] > room[:, done]
            result[todo[done]] = np.where(upper, 1.0, np.where(lower, -1.0, u[done]))
            go = ~done
            if not go.any():
                break
            todo, G, y, u, level, residual, gap = todo[go], G[go], y[go], u[go], level[go], residual[go], gap[go]
            pull, room, floor = pull[:, go], room[:, go], floor[go]
            gram = None if gram is None else gram[go]
        curvature = np.maximum((pull / room).sum(axis=0), floor)

        predicted, d_pull = _direction(G, gram, curvature, residual, pull, room, -pull)
        length = _longest(room, -sign * predicted, pull, d_pull)
        reached = ((pull + length * d_pull) * (room - length * sign * predicted)).mean(axis=(0, 2))[:, None]
        center = gap * np.minimum(reached / gap, 1) ** 3
        correction = (center + sign * d_pull * predicted) / room - pull
        step, d_pull = _direction(G, gram, curvature, residual, pull, room, correction)
        length = 0.995 * _longest(room, -sign * step, pull, d_pull)
        u = u + length * step
        pull, room = pull + length * d_pull, room - length * sign * step
    return result


def _direction(
    G: NDArray[Any],
    gram: NDArray[Any] | None,
    curvature: NDArray[Any],
    residual: NDArray[Any],
    pull: NDArray[Any],
    room: NDArray[Any],
    change: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Newton step in u and in the multipliers: (G Gᵀ + diag(curvature)) step = residual − change₊ + change₋."""
    right = residual - change[0] + change[1]
    if gram is not None:
        matrix = gram + curvature[:, :, None] * np.eye(gram.shape[1])
        step = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
    else:
        scaled = G / curvature[:, :, None]
        inner = np.eye(G.shape[2]) + G.transpose(0, 2, 1) @ scaled
        first = right / curvature
        step = first - _apply(scaled, np.linalg.solve(inner, _apply_t(G, first)[:, :, None])[:, :, 0])
    slope = pull / room
    return step, np.stack([change[0] + slope[0] * step, change[1] - slope[1] * step])


def _longest(*pairs: NDArray[Any]) -> NDArray[Any]:
    """The longest step in [0, 1] keeping all values positive, (m, 1); arguments are values and directions in turn."""
    length: Any = 1.0
    for value, direction in zip(pairs[::2], pairs[1::2], strict=True):
        limit = np.where(direction < 0, -value / np.where(direction < 0, direction, -1), np.inf)
        length = np.minimum(length, limit.min(axis=(0, 2)))
    return np.asarray(length)[:, None]


def _polish(
    G: NDArray[Any], y: NDArray[Any], guess: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Make the guess exact by an active-set method (bounded least squares), which from here takes a round or two.

    Each round solves the free set's least squares and goes there until a bound stops it, which that multiplier then
    joins; where none does, the bound multiplier whose gap has the wrong sign most is set free. Where the gaps are
    about to vanish the guess leaves hundreds of multipliers a hair inside the bound they belong to: those that the
    step would carry over it join it all at once, in the first rounds (later ones must be certain to end).
    """
    u = np.clip(guess, -1, 1)
    free = np.abs(u) < 1
    size = np.linalg.norm(G, axis=2)
    size = np.where(size > 0, size, 1.0)
    scale = size * np.linalg.norm(y, axis=1, keepdims=True)
    todo = np.arange(len(y))
    for number in range(POLISH_ROUNDS):
        rows = np.arange(len(todo))
        held, now = free[todo], u[todo]
        kept = np.where(held, 1 / size[todo], 0.0)[:, :, None] * G[todo]
        inverse = np.linalg.pinv(kept.transpose(0, 2, 1), rcond=1e-12)
        step = np.where(held, _apply(inverse, y[todo] - _apply_t(G[todo], now)) / size[todo], 0.0)
        room = np.where(step > 0, 1 - now, 1 + now)
        near = held & (room < NEAR) & (np.abs(step) > room) & (number < NEAR_ROUNDS)
        reach = np.where((np.abs(step) > 0) & ~near, room / np.where(step == 0, 1, np.abs(step)), np.inf)
        stop = reach.argmin(axis=1)
        length = np.minimum(reach[rows, stop], 1)
        now = np.clip(now + length[:, None] * step, -1, 1)
        blocked = length < 1
        now[rows[blocked], stop[blocked]] = np.sign(step[rows[blocked], stop[blocked]])
        held[rows[blocked], stop[blocked]] = False
        now[near], held[near] = np.sign(step[near]), False
        blocked |= near.any(axis=1)
        wrong = np.where(held, 0.0, -_apply(G[todo], y[todo] - _apply_t(G[todo], now)) * now / scale[todo])
        worst = wrong.argmax(axis=1)
        release = ~blocked & (wrong[rows, worst] > 1e-15)
        held[rows[release], worst[release]] = True
        free[todo], u[todo] = held, now
        todo = todo[blocked | release]
        if len(todo) == 0:
            break
    return u, y - _apply_t(G, u)


def _apply(matrix: NDArray[Any], vector: NDArray[Any]) -> NDArray[Any]:
    return np.asarray((matrix @ vector[:, :, None])[:, :, 0])


def _apply_t(matrix: NDArray[Any], vector: NDArray[Any]) -> NDArray[Any]:
    return np.asarray((vector[:, None, :] @ matrix)[:, 0, :])
