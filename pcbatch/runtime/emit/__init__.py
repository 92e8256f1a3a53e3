"""Emission strategies: how one trip of the machine is written in JAX.

`guard`  each block is a while loop of 0 or 1 iterations that carries only what the block writes (default on CPU);
`port`   one `lax.switch` whose branches return small values, frames are written after it;
`mask`   every block runs in every trip under its mask.

All give the same results. EMISSION choices by platform are made in `pick`.
"""

from __future__ import annotations

import jax

from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.emit.mask import Mask
from pcbatch.runtime.emit.port import Port
from pcbatch.runtime.vm.blocks import Emitter

EMITTERS: dict[str, Emitter] = {"guard": Guard(), "port": Port(), "mask": Mask()}


def pick(name: str, platform: str | None = None) -> Emitter:
    """The emitter called `name`; "auto" decides by platform.

    A guard costs about 0.1 us on a CPU. On an accelerator each of its tests is a round trip to the host, where one
    switch per trip needs one; that choice follows from how XLA runs loops there and awaits measurement.
    """
    if name == "auto":
        name = "guard" if (platform or jax.default_backend()) == "cpu" else "port"
    return EMITTERS[name]
