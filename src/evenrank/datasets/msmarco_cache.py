"""The cache of a file's rows and embeddings: where it is, and whether it is finished."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from evenrank.datasets.msmarco_rows import Rows, TextPairs, collect
from evenrank.errors import ConfigError, DataWarning
from evenrank.features.cache import fill_cache, is_finished, open_cache
from evenrank.features.encoder import Encoder
from evenrank.features.record import UNBOUND, Meta, read_meta
from evenrank.features.spool import TextSpool
from evenrank.io.files import unreadable

ROWS = "rows.npz"


def cached_rows(
    paths: Sequence[Path],
    limit: int | None,
    model: Encoder,
    *,
    cache: str | os.PathLike[str] | None,
    progress: Callable[[float], None] | None,
) -> tuple[Rows, NDArray[Any]]:
    """Read the rows of the files and their features, from the cache as far as it has them.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    limit : int or None
        Read only this number of queries.
    model : Encoder
        What computes the features.
    cache : path or None
        The folder of caches, as in `msmarco`.
    progress : callable or None
        Called with the fraction of embeddings done.

    Returns
    -------
    tuple
        `Rows`, and the features, (n, width).
    """
    data = _data_fingerprint(paths, limit)
    folder = _cache_folder(paths[0], cache, model, data)
    return _finished(folder, model, data) or _computed(folder, paths, limit, model, data, progress)


def _finished(folder: Path, model: Encoder, data: str) -> tuple[Rows, NDArray[Any]] | None:
    """What a finished cache holds, or None if there is something to compute: it may be new, or damaged."""
    meta = read_meta(folder)
    if meta is None or not (folder / ROWS).exists():
        return None
    rows = Rows.load(folder / ROWS, data, bound=meta.format != UNBOUND)
    if rows is None:
        warnings.warn(f"{folder / ROWS}: is damaged, and made again from the data", DataWarning, stacklevel=5)
        return None
    # The cache knows the width, so a finished one needs no model to be loaded.
    wanted = Meta(model.fingerprint, data, len(rows.relevance), meta.width)
    return (rows, open_cache(folder, wanted)) if is_finished(folder, wanted) else None


def _computed(
    folder: Path,
    paths: Sequence[Path],
    limit: int | None,
    model: Encoder,
    data: str,
    progress: Callable[[float], None] | None,
) -> tuple[Rows, NDArray[Any]]:
    width = model.width  # loads the model, so that what is wrong with it shows before a long file is read
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TextSpool(folder) as queries, TextSpool(folder) as passages:
            texts = TextPairs(queries, passages)
            rows = collect(paths, limit, folder, texts)
            meta = Meta(model.fingerprint, data, len(texts), width)
            features = fill_cache(folder, texts, model, meta, progress=progress)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written ({error.strerror or error}). Choose another cache.") from None
    rows.save(folder / ROWS, data)
    return rows, features


def _cache_folder(path: Path, cache: str | os.PathLike[str] | None, model: Encoder, data: str) -> Path:
    """A folder named after the data and the encoder, so that a change of either starts a new one."""
    name = f"{path.name}.embeddings-{_short(model.fingerprint)}-{_short(data)}"
    if cache is not None:
        return Path(cache) / name
    beside = path.absolute().parent
    if (beside / name).is_dir() or os.access(beside, os.W_OK):
        return beside / name
    home = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "evenrank" / name


def _short(fingerprint: str) -> str:
    return hashlib.blake2b(str(fingerprint).encode(), digest_size=4).hexdigest()


def _data_fingerprint(paths: Sequence[Path], limit: int | None) -> str:
    digest = hashlib.blake2b(f"limit {limit}".encode(), digest_size=16)
    for path in paths:
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        except OSError as error:
            raise unreadable(path, error) from None
    return digest.hexdigest()
