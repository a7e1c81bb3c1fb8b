"""Run a command with the arithmetic of another processor: ``python tools/as_processor.py Haswell:2 COMMAND …``.

The last digits of numbers depend on the processor in several places, each with a switch of its own: the kernels of
OpenBLAS; numpy's loops (powers, logarithms, exponentials); the C library's functions, which Python's ``math`` and scipy
call; and, where they are installed, torch with its libraries and numba. A processor is named as OpenBLAS names its
kernels; the number behind it is that of BLAS threads. Without a command, the processors that this machine can stand in
for are printed.
"""

from __future__ import annotations

import os
import sys

V2 = ("SSE", "SSE2", "SSE3", "SSSE3", "SSE41", "POPCNT", "SSE42", "X86_V2")
V3 = (*V2, "AVX", "F16C", "FMA3", "AVX2", "X86_V3")
V4 = (*V3, "AVX512F", "AVX512CD", "AVX512_SKX", "X86_V4")
# What each processor has of the features that numpy tells apart: by the names of numpy 2.4, and by those of before.
FEATURES = {"Haswell": V3, "Prescott": V2[:3], "Nehalem": V2, "SkylakeX": V4}
NEEDS = {"Haswell": "AVX2", "Prescott": "SSE3", "Nehalem": "SSE42", "SkylakeX": "AVX512_SKX"}
THREADS = {"Haswell": 1, "Prescott": 1, "Nehalem": 2, "SkylakeX": 2}
# The C library's choice of functions, torch's loops and libraries, and numba's compiler.
WITHOUT_AVX = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4,-AVX512F,-AVX512VL",
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "NUMBA_CPU_NAME": "nehalem",
}
WITHOUT_AVX512 = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "NUMBA_CPU_NAME": "haswell",
}
OTHERS = {"Haswell": WITHOUT_AVX512, "Prescott": WITHOUT_AVX, "Nehalem": WITHOUT_AVX, "SkylakeX": {}}


def features() -> dict[str, bool]:
    """What this machine has of all that numpy knows."""
    from numpy._core._multiarray_umath import __cpu_features__

    return dict(__cpu_features__)


def processors() -> list[str]:
    """The processors that this machine can stand in for."""
    return [name for name in FEATURES if features().get(NEEDS[name])]


def settings(processor: str, threads: int) -> dict[str, str]:
    """The environment in which this machine computes as the processor does."""
    from numpy._core._multiarray_umath import __cpu_dispatch__

    if processor not in FEATURES or processor not in processors():
        sys.exit(f"as_processor: this machine can stand in for {', '.join(processors())}; got {processor!r}.")
    # numpy cannot do without what it was built to need, and warns of what this machine lacks anyway.
    off = [name for name in __cpu_dispatch__ if features().get(name) and name not in FEATURES[processor]]
    count = {name: str(threads) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    numpy_loops = {"NPY_DISABLE_CPU_FEATURES": " ".join(off)} if off else {}
    return {"OPENBLAS_CORETYPE": processor, **count, **numpy_loops, **OTHERS[processor]}


def main(arguments: list[str]) -> None:
    """Replace this process by the command, in the processor's environment."""
    if not arguments:
        print(" ".join(f"{name}:{THREADS[name]}" for name in processors()))
        return
    processor, _, threads = arguments[0].partition(":")
    changed = settings(processor, int(threads or THREADS.get(processor, 1)))
    print(" ".join(f"{name}={value!r}" for name, value in changed.items()), file=sys.stderr, flush=True)
    if arguments[1:]:
        os.execvpe(arguments[1], arguments[1:], os.environ | changed)


if __name__ == "__main__":
    main(sys.argv[1:])
