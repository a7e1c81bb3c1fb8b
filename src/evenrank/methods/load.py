"""`load`: a model file of any kind, by the registry."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from evenrank.errors import DataError
from evenrank.methods import score_column
from evenrank.methods.method import IN, POST
from evenrank.methods.registry import METHODS
from evenrank.methods.reranked import KIND, RerankedRanker
from evenrank.methods.score_column import ScoreColumn
from evenrank.rankers import model_file
from evenrank.rankers.content import short


def load(path: str | PathLike[str]) -> Any:
    """Read a model file, which a ranker's ``save`` or `evenrank train` wrote.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    ranker or re-ranker
        What was saved, ready to predict or to re-rank. Only the library that it needs is imported.

    Examples
    --------
    >>> import evenrank as er, tempfile, os
    >>> data = er.datasets.german_credit("age")
    >>> ranker = er.FairLinearRanker("dp", alpha=0.1).fit(data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ranker.save(os.path.join(folder, "model.json"))
    ...     again = er.load(os.path.join(folder, "model.json"))
    >>> bool((again.predict(data) == ranker.predict(data)).all())
    True
    """
    return _from_content(model_file.read(path), Path(path).name)


def _from_content(content: dict[str, Any], name: str) -> Any:
    kind = content.get("kind")
    method_of = {method.home[1]: method for method in METHODS.values() if method.saves}
    if kind == KIND:
        return _reranked(content, name)
    if not isinstance(kind, str) or kind not in method_of:
        raise DataError(f"{name} holds a {short(kind)}; this evenrank knows {', '.join([*method_of, KIND])}.")
    return method_of[kind].ranker_class().from_content(content, name)


def _reranked(content: dict[str, Any], name: str) -> RerankedRanker:
    """The two models of a file, which must be a ranker and a re-ranker."""
    kinds = {"base": IN, "reranker": POST}
    parts = {key: model_file.need(content, key, dict, name=name) for key in kinds}
    for key, part in parts.items():
        known = [method.home[1] for method in METHODS.values() if method.saves and method.kind == kinds[key]]
        known += [score_column.KIND] if key == "base" else []
        if part.get("kind") not in known:
            raise DataError(
                f"{name}: {key!r} must be one of {', '.join(dict.fromkeys(known))}; got {short(part.get('kind'))}."
            )
    adapt = model_file.need(content, "parameters", dict, name=name).get("adapt")
    base = parts["base"]
    given = base["kind"] == score_column.KIND
    ranker = ScoreColumn.from_content(base, name) if given else _from_content(base, name)
    reranker = _from_content(parts["reranker"], name)
    if not isinstance(adapt, bool) or (adapt and not hasattr(reranker, "adapt")):
        raise DataError(
            f"{name}: 'adapt' must be true or false, and false if the re-ranker cannot; got {short(adapt)}."
        )
    return RerankedRanker(ranker, reranker, adapt=adapt)
