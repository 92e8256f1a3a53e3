"""The emitter `kernel`: the whole machine in one kernel of a GPU.

A program of the grid is a tile of lanes, which makes trips of its own: program counters and small registers are
registers of threads, larger ones and frames stay in the arrays of the machine's state, which the kernel writes over.
`rules/` computes the jaxprs of blocks by operations that Pallas Triton lowers, `kernel_plan.py` traces blocks for a
tile, `tile.py` makes trips, `launch.py` calls the kernel, `refill.py` hands out inputs inside of it, `qualify.py` says
what stands in the way. On a CPU the kernel is interpreted, which is for tests.

The idea is that of "Cocktailer: Analyzing and Optimizing Dynamic Control Flow in Deep Learning" (OSDI 2023): loops and
branches on the device, next to what they control.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcbatch.runtime.kernel.machine import in_kernel as in_kernel
    from pcbatch.runtime.kernel.machine import planned as planned

__all__ = ["in_kernel", "planned"]


def __getattr__(name: str) -> Any:
    """Return a function of the machine, imported at its first use: with Pallas that takes a tenth of a second."""
    if name not in __all__:
        raise AttributeError(name)
    return getattr(importlib.import_module(f"{__name__}.machine"), name)
