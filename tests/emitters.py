"""Which of XLA's emitters compile the programs of a test.

XLA compiles for a CPU in two thirds of the time with the emitters that it had before, which JAX 0.10 still has. In a
usual run they compile all but the programs of the machine in the folders `MACHINE` and in tests that are marked
`in_place`: those are compiled with the emitters and options that users have, like everything with `--full` and the
random programs of `make fuzz`. Tests in these folders that ask for results, limits or counts alone are marked
`older_emitters`; the nearest mark decides. The folder of `KERNELS` has the older ones.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

FLAG = "--xla_cpu_use_fusion_emitters"
OLDER, OF_USERS = f"{FLAG}=false", f"{FLAG}=true"

# The folders whose tests ask how the machine runs, and not only what a function means.
MACHINE = frozenset({"differential", "runtime"})

# Kernels of GPUs are interpreted: whatever XLA makes of them for a CPU, another compiler makes what users run.
KERNELS = "tests/runtime/kernel/"


def choose(flags: list[str]) -> list[str]:
    """Add the flag that chooses the emitters to XLA's flags, unless they choose or no test is run.

    JAX 0.12 ends at the flag, which its XLA has no longer. The workers of pytest-xdist are given what the first
    process has chosen.
    """
    chosen = any(flag.startswith(FLAG) for flag in flags)
    if chosen or "pytest" not in sys.modules or not version("jaxlib").startswith("0.10."):
        return flags
    return [*flags, OF_USERS if "--full" in sys.argv else OLDER]


def are_those_of_users(test: pytest.Item) -> bool:
    """Whether the machine's programs of this test are compiled as users have them; the closest mark decides."""
    for mark in test.iter_markers():
        if mark.name in ("in_place", "older_emitters"):
            return mark.name == "in_place"
    return test.nodeid.split("/")[1] in MACHINE and not test.nodeid.startswith(KERNELS)


def use_those_of_users(patch: pytest.MonkeyPatch) -> None:
    """Compile the machine's programs with the emitters and options that users have, if the flags choose the older ones.

    XLA has read its flags; those of the environment are for the compiler, and for processes that a test starts.
    """
    from pcbatch.runtime.costs import xla_options

    flags = os.environ["XLA_FLAGS"].split()
    if OLDER in flags:
        patch.setenv("XLA_FLAGS", " ".join(flag for flag in flags if flag != OLDER))
        patch.setitem(xla_options.ON_CPUS, FLAG.removeprefix("--"), True)
