"""Lane after lane in native code: the scalar part of a run on a CPU."""

from pcbatch.runtime.scalar.machine import ScalarMachine as ScalarMachine
from pcbatch.runtime.scalar.machine import scalar as scalar
from pcbatch.runtime.scalar.obstacles import Obstacle as Obstacle
from pcbatch.runtime.scalar.obstacles import obstacles as obstacles

__all__ = ["Obstacle", "ScalarMachine", "obstacles", "scalar"]
