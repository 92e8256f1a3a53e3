"""Lane after lane in native code: the scalar part of a run on a CPU."""

from pcbatch.runtime.scalar.machine import scalar as scalar

__all__ = ["scalar"]
