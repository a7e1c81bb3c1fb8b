"""Training at MS MARCO's shape: 100,000 queries × 8.8 passages × 768 float16 features in a memory-mapped file.

16 strengths × 6 settings (3 notions × 2 groupings) = 96 models share every pass over the rows (batches of 100 queries,
up to 10 passages each, as in the paper). The peer trains one model at a time in torch (nn.Linear, autograd, SGD) on
the same batches, reading them from the same file. Rows are made up: only their shape is MS MARCO's.

`--queries 1000000` is the whole collection's size (13.5 GB of features, on the disk of `--folder`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

import common
import evenrank as er
from sgd import ALPHAS, BATCH, FEATURES, NOTIONS, SEED, torch_pass

SHARES = (0.32, 0.05)  # of passages outside the first group, as the paper gives them for its two groupings
RELEVANT = 0.65  # relevant passages a query
EPOCHS = 5  # the paper's
PAPER_EXPERIMENTS, PAPER_MINUTES = 960, 9  # its own algorithm: 960 runs of about 9 CPU minutes


def list_lengths(queries: int) -> np.ndarray:
    """1 to 10 passages a query, 8.8 in the mean."""
    lengths = np.random.default_rng(1).choice([10, 9, 8, 7, 5, 1], size=queries, p=[0.55, 0.18, 0.1, 0.07, 0.07, 0.03])
    return lengths.astype(np.int64)


def write_features(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    features = np.memmap(path, np.float16, "w+", shape=(rows, FEATURES))
    for start in range(0, rows, 20_000):
        size = min(20_000, rows - start)
        features[start : start + size] = 0.5 * rng.standard_normal((size, FEATURES), np.float32)
    features.flush()


def open_data(path: Path, queries: int) -> list[er.RankingData]:
    lengths = list_lengths(queries)
    rows = int(lengths.sum())
    rng = np.random.default_rng(2)
    features = np.memmap(path, np.float16, "r", shape=(rows, FEATURES))
    relevance = (rng.random(rows) < RELEVANT / lengths.mean()).astype(float)
    data = er.RankingData.from_arrays(
        features, relevance, rng.random(rows) < SHARES[0], np.repeat(np.arange(queries), lengths)
    )
    return [data, data.with_group(rng.random(rows) < SHARES[1])]


def train(path: Path, queries: int, epochs: int, threads: int) -> tuple[float, int, float, float, float]:
    """Seconds and batches of training; anonymous memory before it and at its highest, and all resident, in MB."""
    common.cap_threads(threads)
    with common.watch_memory() as peak:
        data = open_data(path, queries)
        took, trained = common.timed(
            lambda: er.fairness_path(data, list(NOTIONS), ALPHAS, "sgd", scale=None, epochs=epochs, seed=SEED)
        )
    return took, trained.steps, peak.before, peak.highest, common.highest_resident_mb()


def read_batches(torch, data: er.RankingData) -> Iterator[tuple]:
    """The library's batches of the first epoch as tensors, read as they are needed."""
    relevance = data.relevance.astype(np.float32)
    shuffled = np.random.default_rng(SEED).permutation(data.n_queries)
    for start in range(0, len(shuffled), BATCH):
        chosen = shuffled[start : start + BATCH]
        rows = np.concatenate([np.arange(data.query_ptr[q], data.query_ptr[q + 1]) for q in chosen])
        X = np.asarray(data.features[rows]).astype(np.float32)
        yield tuple(map(torch.from_numpy, (X, relevance[rows], data.group[rows])))


def one_at_a_time(path: Path, queries: int, batches: int, threads: int) -> float:
    """Seconds a batch of one model in torch, after a warm-up."""
    import torch

    common.cap_threads(threads)
    data = open_data(path, queries)[0]
    torch_pass(torch, islice(read_batches(torch, data), 5), "eop", 1.0)
    return common.timed(lambda: torch_pass(torch, islice(read_batches(torch, data), batches), "eop", 1.0))[0] / batches


def main() -> None:
    made = common.parser(__doc__)
    made.add_argument("--queries", type=int, default=100_000)
    made.add_argument("--epochs", type=int, default=EPOCHS)
    made.add_argument("--folder", type=Path, help="where the features go; default: a temporary folder")
    args = made.parse_args()
    queries, epochs = (10_000, 1) if args.quick else (args.queries, args.epochs)
    common.start(f"Training at MS MARCO's shape, {queries:,} queries", ["torch"], threads=args.threads)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = Path(folder) / "features"
        rows = int(list_lengths(queries).sum())
        print(f"writing {rows:,} rows × {FEATURES} float16 ({rows * FEATURES * 2 / 1e9:.1f} GB)", flush=True)
        write_features(path, rows)
        report(path, queries, rows, epochs, args.threads, batches=30 if args.quick else 200)


def report(path: Path, queries: int, rows: int, epochs: int, threads: int, *, batches: int) -> None:
    took, steps, before, highest, resident = common.in_fresh_process(train, path, queries, epochs, threads)
    models = len(NOTIONS) * len(SHARES) * len(ALPHAS)
    each = took / steps / models
    lines = [
        ["models trained together", models],
        ["seconds", f"{took:.1f} ({epochs} epochs, {steps} batches)"],
        ["rows/s", f"{rows * epochs / took:,.0f}"],
        ["rows × models/s", f"{rows * epochs * models / took:,.0f}"],
        ["anonymous memory", f"{highest:.0f} MB at its highest ({before:.0f} before)"],
        ["resident, with pages of the mapped file", f"{resident:.0f} MB (the system takes them back when it needs to)"],
        ["ms a batch and model", f"{each * 1e3:.4f}"],
    ]
    if common.peer("torch") is not None:
        other = common.in_fresh_process(one_at_a_time, path, queries, batches, threads)
        lines.append([f"torch, one model, ms a batch ({batches} batches)", f"{other * 1e3:.3f}"])
        lines.append(["ratio a model", common.times(other / each)])
    else:
        lines.append(["torch", common.MISSING])
    common.table(["", "found"], lines)
    # Seeds are the one thing that does not share passes.
    whole = took * (1_000_000 / queries) * (EPOCHS / epochs) * PAPER_EXPERIMENTS / models
    common.note(
        f"EXTRAPOLATED, not measured: the paper's {PAPER_EXPERIMENTS} experiments of its own algorithm (96 models × 10 "
        f"seeds, 1 million queries, {EPOCHS} epochs) would take {whole / 60:.0f} minutes here, training only; "
        f"the paper reports {PAPER_EXPERIMENTS * PAPER_MINUTES / 60:.0f} CPU hours, evaluation included."
    )


if __name__ == "__main__":
    main()
