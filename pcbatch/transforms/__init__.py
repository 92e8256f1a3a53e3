"""A run as an operation of JAX: what `vmap`, `jvp` and `grad` make of it."""

from __future__ import annotations

from pcbatch.transforms.failure_callback import Notice
from pcbatch.transforms.forward_only import forward_only
from pcbatch.transforms.run import UnsharingProgram, records_of, traced_run

__all__ = ["Notice", "UnsharingProgram", "forward_only", "records_of", "traced_run"]
