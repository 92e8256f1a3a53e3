"""The interface of executables: a program that a strategy has made, and the ways to run it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from pcbatch.runtime.execute.chunk_runner import Chunk, ChunkPlan
from pcbatch.runtime.sharding.lane_sharding import Devices
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Site


class Executable(Protocol):
    """A program that a strategy has made: ways to run it, and to look at it."""

    @property
    def depth(self) -> int:
        """The nested calls that `lower` leaves room for."""

    @property
    def params(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""

    def where(self, pc: int, back: int | None = None) -> Site:
        """Return where a lane stopped, by its final program counter and the return address of its last call."""

    def run(self, args: Any, lanes: int, mesh: Devices = None) -> RawResult:
        """Run all lanes to their end, spread over the devices of a mesh."""

    def map(self, args: Any, inputs: int, lanes: int | None, mesh: Devices) -> RawResult:
        """Run all inputs through `lanes` lanes on each device; None: the executable decides."""

    def map_chunks(self, pieces: Iterable[Chunk], common: Any, flow: ChunkPlan, mesh: Devices) -> RawResult:
        """Run inputs that come in chunks."""

    def lower(self, args: Any, lanes: int, mesh: Devices = None) -> Any:
        """`jax.stages.Lowered` of a run."""

    def outcome(self, result: Any, depth: int, lanes: int, mesh: Devices) -> RawResult:
        """The raw result of what the executable of `lower(...).compile()` returned, with stacks of this depth."""

    def jaxpr(self, args: Any, lanes: int, mesh: Devices = None) -> Any:
        """Return the jaxpr of a run."""
