"""Emitters: strategies for writing the visits of blocks in JAX.

`guard`  each block is a while loop of 0 or 1 iterations that carries only what the block writes (default on CPU);
`port`   one `lax.switch` whose branches return small values, frames are written after it;
`mask`   every block runs in every trip under its mask.

All of them give the same results. `pick` chooses one by platform.
"""

from __future__ import annotations

import jax

from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.emit.mask import Mask
from pcbatch.runtime.emit.port import Port
from pcbatch.runtime.vm.blocks import Emitter

EMITTERS: dict[str, Emitter] = {"guard": Guard(), "port": Port(), "mask": Mask()}


def pick(name: str, platform: str | None = None) -> Emitter:
    """Return the emitter called `name`, one of `EMITTERS`, or for "auto" the one for a platform.

    Args:
        name: The option `emitter=`.
        platform: `"cpu"`, `"gpu"` or `"tpu"`; None for JAX's default backend.

    A guard costs about 0.1 us on a CPU. On an accelerator each of its tests is a round trip to the host, and one switch
    per trip needs a single one: "auto" is "guard" on CPUs and "port" elsewhere. The latter follows from how XLA runs
    loops on accelerators, and awaits measurement.
    """
    if name == "auto":
        name = "guard" if (platform or jax.default_backend()) == "cpu" else "port"
    return EMITTERS[name]
