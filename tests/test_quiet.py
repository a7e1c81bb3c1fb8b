"""What libraries print does not reach the streams; what we say does."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from evenrank.quiet import first_line, from_library, quiet

SCRIPT = """
import ctypes, os, sys, warnings
from evenrank.quiet import quiet
print("before")
with quiet():
    print("a library in Python")
    ctypes.CDLL(None).puts(b"a library in C")
    os.write(1, b"a library below\\n")
    os.write(2, b"a library below\\n")
    print("a word of ours", file=sys.stderr)
    with quiet():
        print("a library again")
print("after")
print("done", file=sys.stderr)
"""


def test_only_our_own_words_reach_the_streams() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == "before\nafter\n"
    assert done.stderr == "a word of ours\ndone\n"


def test_closed_streams_are_no_trouble() -> None:
    script = "import os\nfrom evenrank.quiet import quiet\nos.close(1)\nwith quiet():\n    print(1)\nos.write(2, b'ok')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.startswith("ok")


def test_the_streams_come_back_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), quiet():
        print(1 / 0)
    print("still here")
    assert capfd.readouterr().out == "still here\n"


def test_warnings_of_lightgbm_become_ours() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with quiet():
            print("[LightGBM] [Warning] Unknown parameter: x")
            print("[LightGBM] [Warning] Unknown parameter: x")
            print("[LightGBM] [Warning] No further splits with positive gain, best gain: -inf")
            print("[LightGBM] [Info] Total Bins 255")
    assert [str(warning.message) for warning in caught] == ["LightGBM: Unknown parameter: x"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "RuntimeError"),
        ("\n plain \nStack trace:\n (0) lib.so", "plain"),
        (
            "[09:31:12] /workspace/src/tree.cc:31: Check failed: a == b\nStack trace:\n  [bt] (0)",
            "Check failed: a == b",
        ),
        ("Check failed: (a) > (0) at /__w/src/bin.hpp, line 15 .", "Check failed: (a) > (0)"),
    ],
)
def test_the_first_line_of_an_error(text: str, line: str) -> None:
    error = RuntimeError(text)
    assert first_line(error) == line
    assert not from_library(error)
