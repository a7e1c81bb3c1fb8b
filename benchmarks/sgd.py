"""Stochastic descent at MS MARCO width: batches of 100 queries × 10 items × 768 features in float32, from a memmap.

16 strengths × 6 settings (3 notions × 2 groupings) = 96 models share one pass; the peers train one model at a time,
in torch (nn.Linear, autograd, SGD) and in numpy with the gradient written out. They take the same batches in the same
order, so that the weights can be compared. Peers are timed with the batches already in memory, which spares them the
reading that ours includes; torch is timed with the reading too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

import common
import evenrank as er

BATCH, ITEMS, FEATURES = 100, 10, 768
NOTIONS = ("dp", "eop", "eod")
RATE, SEED = 1e-4, 0
ALPHAS = er.strength_grid(15)
MB = 1 << 20


def write_rows(path: Path, n: int) -> np.memmap:
    """Embedding-like features, written block by block."""
    rng = np.random.default_rng(0)
    X = np.memmap(path, np.float32, "w+", shape=(n, FEATURES))
    for start in range(0, n, 10_000):
        X[start : start + 10_000] = 0.5 * rng.standard_normal((min(10_000, n - start), FEATURES), np.float32)
    X.flush()
    return np.memmap(path, np.float32, "r", shape=(n, FEATURES))


def groupings(X: np.memmap) -> list[er.RankingData]:
    """One relevant item a query, and two groupings: one common, one of a tenth of the items."""
    rng = np.random.default_rng(1)
    n = len(X)
    relevance = np.zeros(n)
    relevance[np.arange(0, n, ITEMS) + rng.integers(0, ITEMS, n // ITEMS)] = 1
    data = er.RankingData.from_arrays(X, relevance, rng.random(n) < 0.45, np.repeat(np.arange(n // ITEMS), ITEMS))
    return [data, data.with_group(rng.random(n) < 0.1)]


def ours(data: list[er.RankingData]) -> er.FairnessPath:
    return er.fairness_path(data, list(NOTIONS), alphas=ALPHAS, solver="sgd", scale=None, epochs=1, seed=SEED)


# ---------------------------------------------------------------------- one model at a time


def batch_rows(data: er.RankingData) -> Iterator[np.ndarray]:
    """The rows of each batch, in the order the library draws them from the seed."""
    shuffled = np.random.default_rng(SEED).permutation(data.n_queries)
    for start in range(0, len(shuffled), BATCH):
        yield (shuffled[start : start + BATCH, None] * ITEMS + np.arange(ITEMS)).ravel()


def conditions(relevance: np.ndarray, notion: str) -> list[np.ndarray]:
    return {"dp": [relevance >= 0], "eop": [relevance == 1], "eod": [relevance == 0, relevance == 1]}[notion]


def torch_pass(torch, batches, notion: str, alpha: float) -> np.ndarray:
    """One epoch of one model with autograd; batches are tensors (X, relevance, group)."""
    model = torch.nn.Linear(FEATURES, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for X, r, group in batches:
        optimizer.zero_grad()
        scores = model(X).squeeze(1)
        cells = conditions(r, notion)
        gap = sum(
            (scores[rows & (group == 0)].mean() - scores[rows & (group == 1)].mean()).abs() for rows in cells
        ) / len(cells)
        loss = torch.nn.functional.mse_loss(scores, r) + alpha * gap
        loss.backward()
        optimizer.step()
    return torch.cat([model.weight[0], model.bias]).detach().numpy()


def numpy_pass(batches, notion: str, alpha: float) -> np.ndarray:
    """The same with the gradient written out."""
    weights, intercept = np.zeros(FEATURES, np.float32), np.float32(0)
    for X, r, group in batches:
        scores = X @ weights + intercept
        slope = 2 * (scores - r) / np.float32(len(r))
        cells = conditions(r, notion)
        for rows in cells:
            a, b = rows & (group == 0), rows & (group == 1)
            sign = np.sign(scores[a].mean() - scores[b].mean()) * np.float32(alpha / len(cells))
            slope[a] += sign / np.float32(np.count_nonzero(a))
            slope[b] -= sign / np.float32(np.count_nonzero(b))
        weights -= np.float32(RATE) * (slope @ X)
        intercept -= np.float32(RATE) * slope.sum()
    return np.append(weights, intercept)


def read_batches(torch, data: er.RankingData) -> Iterator[tuple]:
    """Batches as tensors, read from the memmap as they are needed."""
    relevance = data.relevance.astype(np.float32)
    for rows in batch_rows(data):
        yield tuple(map(torch.from_numpy, (np.asarray(data.features[rows]), relevance[rows], data.group[rows])))


def main() -> None:
    args = common.parser(__doc__).parse_args()
    torch = common.peer("torch")
    common.start("Stochastic descent, 96 models in one pass", ["torch"], threads=args.threads)
    with tempfile.TemporaryDirectory() as folder:
        compare(torch, Path(folder), batches=20 if args.quick else 60, repeats=2 if args.quick else 5)
        memory(Path(folder), rows=20_000 if args.quick else 100_000, threads=args.threads)


def compare(torch, folder: Path, *, batches: int, repeats: int) -> None:
    data = groupings(write_rows(folder / "timed", batches * BATCH * ITEMS))
    settings = [(grouping, notion) for grouping in data for notion in NOTIONS]
    models = len(settings) * len(ALPHAS)
    setting, strength = 2, 8  # equalized odds in the first grouping, at a middling strength
    grouping, notion = settings[setting]
    arrays = [
        (
            np.ascontiguousarray(grouping.features[rows]),
            grouping.relevance[rows].astype(np.float32),
            grouping.group[rows].copy(),
        )
        for rows in batch_rows(grouping)
    ]
    alpha = float(ALPHAS[strength])
    passes = {"numpy, one model, batches in memory": partial(numpy_pass, arrays, notion, alpha)}
    if torch is not None:
        tensors = [tuple(map(torch.from_numpy, batch)) for batch in arrays]
        passes["torch, one model, batches in memory"] = partial(torch_pass, torch, tensors, notion, alpha)
        passes["torch, one model, reading the memmap"] = lambda: torch_pass(
            torch, read_batches(torch, grouping), notion, alpha
        )

    own, *others = common.best_of_each([partial(ours, data), *passes.values()], repeats)
    per_model = own / batches / models
    rows = [
        [f"evenrank, {models} models, reading the memmap", f"{own / batches * 1e3:.2f}", f"{per_model * 1e3:.4f}", ""]
    ]
    for name, took in zip(passes, others, strict=True):
        each = f"{took / batches * 1e3:.3f}"
        rows.append([name, each, each, common.times(took / batches / per_model)])
    if torch is None:
        rows.append(["torch", common.MISSING, "", ""])
    common.table([f"best of {repeats}, {batches} batches", "ms a batch", "ms a batch and model", "ratio"], rows)

    path = ours(data)
    model = setting * len(ALPHAS) + strength
    trained = np.append(path.coef[model], path.intercept[model])
    for name in list(passes)[:2]:
        other = passes[name]()
        gap = np.abs(trained - other).max() / np.abs(trained).max()
        common.note(f"largest difference in the weights from {name.split(',')[0]}, relative: {gap:.1e}")
    print()


def memory(folder: Path, *, rows: int, threads: int) -> None:
    """Anonymous memory of a run as the rows grow."""
    lines = []
    for n in (rows, 2 * rows, 4 * rows):
        write_rows(folder / "grown", n)
        took, before, highest = common.in_fresh_process(one_run, folder / "grown", n, threads)
        file, batch = n * FEATURES * 4 / MB, took / (n / BATCH / ITEMS)
        lines.append([f"{n:,}", f"{file:.0f}", f"{took:.1f}", f"{batch * 1e3:.2f}", f"{before:.0f}", f"{highest:.0f}"])
    columns = ["rows", "file, MB", "time, s", "ms a batch", "RssAnon before, MB", "RssAnon peak, MB"]
    common.table(columns, lines)


def one_run(path: Path, n: int, threads: int) -> tuple[float, float, float]:
    """Seconds of training, and the anonymous memory before the data is opened and at its highest."""
    common.cap_threads(threads)
    with common.watch_memory() as peak:
        data = groupings(np.memmap(path, np.float32, "r", shape=(n, FEATURES)))
        took, _ = common.timed(partial(ours, data))
    return took, peak.before, peak.highest


if __name__ == "__main__":
    main()
