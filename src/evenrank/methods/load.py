"""`load`: a model file of any kind, by the registry."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from evenrank.errors import DataError
from evenrank.methods.registry import METHODS
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
    FairLinearRanker, DELTR, FairLGBMRanker, FairXGBRanker or FairNeuralRanker
        The ranker, ready to predict. Only the library that it needs is imported.

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
    content = model_file.read(path)
    name, kind = Path(path).name, content.get("kind")
    method_of = {method.home[1]: method for method in METHODS.values() if method.saves}
    if not isinstance(kind, str) or kind not in method_of:
        raise DataError(f"{name} holds a {short(kind)}; this evenrank knows {', '.join(method_of)}.")
    return method_of[kind].ranker_class().from_content(content, name)
