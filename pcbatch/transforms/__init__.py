"""Runs as operations of JAX, with rules for `vmap`, `jvp` and `grad`."""

from __future__ import annotations

from pcbatch.transforms.failure_callback import Notice
from pcbatch.transforms.forward_only import forward_only
from pcbatch.transforms.run import UnsharingProgram, records_of, traced_run

__all__ = ["Notice", "UnsharingProgram", "forward_only", "records_of", "traced_run"]
