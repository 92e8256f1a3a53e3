"""Lane after lane in native code: the scalar part of a run on a CPU."""

from pcbatch.runtime.scalar.machine import ScalarMachine as ScalarMachine
from pcbatch.runtime.scalar.machine import scalar as scalar
from pcbatch.runtime.scalar.obstacles import Obstacle as Obstacle
from pcbatch.runtime.scalar.obstacles import for_one_lane as for_one_lane
from pcbatch.runtime.scalar.obstacles import left_in as left_in
from pcbatch.runtime.scalar.obstacles import obstacles as obstacles

__all__ = ["Obstacle", "ScalarMachine", "for_one_lane", "left_in", "obstacles", "scalar"]
