"""Encoders of (query, passage) pairs: the protocol, and BERT-like transformers run by onnxruntime."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_number
from evenrank.errors import ConfigError, DataError, EvenrankError
from evenrank.extras import require
from evenrank.features.models import find_model

MAX_TOKENS = 200
BATCH_SIZE = 16
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_HASHED = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "model.onnx", "model.safetensors")


@runtime_checkable
class Encoder(Protocol):
    """What turns pairs of texts into vectors: any object with these two attributes and ``encode``.

    Attributes
    ----------
    fingerprint : str
        A text that differs between encoders that give different vectors; caches go by it.
    width : int
        The number of features of a vector.
    """

    @property
    def fingerprint(self) -> str: ...

    @property
    def width(self) -> int: ...

    def encode(self, queries: Sequence[str], passages: Sequence[str]) -> NDArray[Any]:
        """Compute one vector per pair; the same pairs must give the same vectors.

        Parameters
        ----------
        queries, passages : sequence of str
            The texts, n each.

        Returns
        -------
        ndarray
            (n, width).
        """
        ...


def open_encoder(
    encoder: Encoder | str | os.PathLike[str] | None = None,
    *,
    max_tokens: int = MAX_TOKENS,
    batch_size: int = BATCH_SIZE,
) -> Encoder:
    """Open an encoder.

    Parameters
    ----------
    encoder : Encoder, path, name or None
        An encoder, which is returned as it is; or the folder, package or hub name of a transformer. For None see
        `find_model`.
    max_tokens, batch_size : int
        As in `TransformerEncoder`.

    Returns
    -------
    Encoder
        The encoder.
    """
    if encoder is None or isinstance(encoder, str | os.PathLike):
        return TransformerEncoder(find_model(encoder), max_tokens=max_tokens, batch_size=batch_size)
    if not isinstance(encoder, TransformerEncoder | Encoder):
        raise ConfigError(
            "encoder must be a folder, a name or an object with fingerprint, width and encode; "
            f"got {type(encoder).__name__}."
        )
    return encoder


class TransformerEncoder:
    """The hidden state of the first token of ``[CLS] query [SEP] passage [SEP]``, cut to ``max_tokens``.

    Parameters
    ----------
    folder : path
        config.json, tokenizer.json or vocab.txt, and model.safetensors of a family in `checkpoint.FAMILIES`, or
        model.onnx of any family, which is then used as it is: the first row of its first output.
    max_tokens : int
        Longer pairs lose tokens from the end of the longer text.
    batch_size : int
        Pairs computed at once. Pairs are sorted by length first, so that little is spent on padding.
    threads : int or None
        Threads of onnxruntime; None is OMP_NUM_THREADS if set, else every core.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        max_tokens: int = MAX_TOKENS,
        batch_size: int = BATCH_SIZE,
        threads: int | None = None,
    ) -> None:
        self.folder, self.threads = Path(folder), threads
        self.max_tokens, self.batch_size = _whole(max_tokens, "max_tokens", 4), _whole(batch_size, "batch_size", 1)
        self.fingerprint = _fingerprint(self.folder, self.max_tokens)

    @cached_property
    def width(self) -> int:
        """The model's hidden size. It is found by encoding the longest text allowed, so that failures come early."""
        text = "word " * self.max_tokens
        try:
            return int(self.encode([text], [text]).shape[1])
        except EvenrankError:
            raise
        except Exception as error:  # onnxruntime's errors share no base class
            raise ConfigError(
                f"{self.folder}: the model fails on texts of max_tokens={self.max_tokens} tokens; "
                f"most take 512 at most ({str(error).splitlines()[0][:200]})."
            ) from None

    def encode(self, queries: Sequence[str], passages: Sequence[str]) -> NDArray[np.float32]:
        """Compute one vector per pair, in the order given.

        Parameters
        ----------
        queries, passages : sequence of str
            The texts, n each.

        Returns
        -------
        ndarray of float32
            (n, width).
        """
        pairs = self._tokenizer.encode_batch(list(zip(queries, passages, strict=True)))
        lengths = np.array([len(pair) for pair in pairs])
        order = np.argsort(lengths, kind="stable")
        out: NDArray[np.float32] | None = None
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            vectors = self._run([pairs[i] for i in batch], int(lengths[batch].max()))
            if out is None:
                out = np.empty((len(order), vectors.shape[1]), np.float32)
            out[batch] = vectors
        return np.empty((0, self.width), np.float32) if out is None else out

    def _run(self, pairs: list[Any], length: int) -> NDArray[np.float32]:
        filled = {name: np.zeros((len(pairs), length), np.int64) for name in _INPUTS}
        for row, pair in enumerate(pairs):
            filled["input_ids"][row, : len(pair)] = pair.ids
            filled["token_type_ids"][row, : len(pair)] = pair.type_ids
            filled["attention_mask"][row, : len(pair)] = 1
        output = self._session.run(None, {name: filled[name] for name in self._inputs})[0]
        return np.asarray(output[:, 0] if output.ndim == 3 else output, np.float32)

    @cached_property
    def _tokenizer(self) -> Any:
        return _load_tokenizer(self.folder, self.max_tokens)

    @cached_property
    def _session(self) -> Any:
        return _load_session(self.folder, self.threads)

    @cached_property
    def _inputs(self) -> list[str]:
        names = [str(taken.name) for taken in self._session.get_inputs()]
        strange = sorted(set(names) - set(_INPUTS))
        if strange:
            raise ConfigError(
                f"{self.folder}: model.onnx must take only {', '.join(_INPUTS)}; it takes {strange[0]!r} too."
            )
        return names


def _whole(value: int, what: str, least: int) -> int:
    check_number(value, what, least=least, whole=True)
    return int(value)


def _load_tokenizer(folder: Path, max_tokens: int) -> Any:
    from evenrank.features.checkpoint import load_config

    tokenizers = require("tokenizers")
    try:
        if (folder / "tokenizer.json").is_file():
            tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        else:
            configured = (folder / "tokenizer_config.json").is_file()
            lower = (
                bool(load_config(folder, "tokenizer_config.json").get("do_lower_case", True)) if configured else True
            )
            tokenizer = tokenizers.BertWordPieceTokenizer.from_file(str(folder / "vocab.txt"), lowercase=lower)
    except Exception as error:
        raise DataError(f"{folder}: its tokenizer cannot be read ({error}). Download it again.") from None
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _load_session(folder: Path, threads: int | None) -> Any:
    runtime = require("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0) if threads is None else threads
    ready = folder / "model.onnx"
    if ready.is_file():
        model: str | bytes = str(ready)
    else:
        from evenrank.features.checkpoint import load_checkpoint
        from evenrank.features.graph import build_graph

        checkpoint = load_checkpoint(folder)
        try:
            model = build_graph(checkpoint)
        except EvenrankError:
            raise
        except (IndexError, ValueError) as error:
            raise DataError(f"{folder}: the tensors of model.safetensors do not fit together ({error}).") from None
    try:
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise DataError(f"{folder}: onnxruntime cannot load the model ({str(error).splitlines()[0]}).") from None


def _fingerprint(folder: Path, max_tokens: int) -> str:
    """A hash of all that the vectors depend on: the model's files and the number of tokens."""
    digest = hashlib.blake2b(f"first token, {max_tokens} tokens".encode(), digest_size=16)
    for name in _HASHED:
        if (folder / name).is_file():
            digest.update(name.encode())
            with (folder / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()
