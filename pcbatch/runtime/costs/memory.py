"""The memory that the state of a machine takes, by variable, and the check that it fits, before any of it is made."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax

from pcbatch.diagnostics.byte_sizes import amount
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import TooLargeError
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import jax_dtype
from pcbatch.runtime.sharding.lane_sharding import LaneSharding
from pcbatch.runtime.vm.layout import Layout

SHARE = 0.5  # of a device's memory that a machine may take without `max_memory`
SHOWN = 6  # variables listed in messages
SMALL = 2**24  # bytes of stacks that are made in less time than any program is compiled in
UNKNOWN = 2**33  # bytes assumed of a device that does not tell its memory
CONTROL = 16  # bytes of a lane besides its values: program counter, depth, steps, name


class Part(NamedTuple):
    """The memory of one variable in a machine's state."""

    what: str  # for messages
    each: int  # bytes for each lane, frame or input
    many: int  # the number of those

    @property
    def size(self) -> int:
        """The bytes of the variable in all."""
        return self.each * self.many


@dataclass(slots=True)
class MachineMemory:
    """The memory that machines of a program need, for any number of lanes."""

    layout: Layout
    asked: int | None  # the user's limit, bytes on each device
    lane: int = field(init=False)  # bytes of a lane's registers
    frame: int = field(init=False)  # bytes of a frame
    input: int = field(init=False)  # bytes of the arguments and results of one input of a queue

    def __post_init__(self) -> None:
        program, registers = self.layout.program, self.layout.registers
        self.lane = CONTROL + sum(map(self._size, registers))
        self.frame = 0 if self.layout.frames is None else self.layout.frames.bytes()
        results = {*program.results, *self.layout.shown} & set(registers)
        self.input = CONTROL + sum(map(self._size, (*results, *(v for v in program.params if v in registers))))

    def _size(self, name: str) -> int:
        return size_of(self.layout.stored_type(name))

    def total(self, width: int, depth: int, slots: int = 0) -> int:
        """Return the bytes of a machine's state on one device.

        Args:
            width: The number of lanes.
            depth: The nested calls that there is room for.
            slots: The number of inputs in the queue; 0: there is none.
        """
        return width * (self.lane + self.frame * (depth + 2)) + slots * self.input

    def has_room(self, spread: LaneSharding, width: int, depth: int, deeper: int) -> bool:
        """Whether stacks can grow from `depth` to `deeper` calls; while they do, there are both the old and the new."""
        both = self.total(width, deeper) + width * self.frame * (depth + 2)
        return both <= self.limit(spread)

    def is_small(self, width: int, depth: int) -> bool:
        """Whether stacks of this depth take negligible memory and time, even if calls never get as deep."""
        return width * self.frame * (depth + 2) <= SMALL

    def limit(self, spread: LaneSharding) -> int:
        """Return the limit of a machine's memory, bytes on each device."""
        return _of_device(spread.mesh) if self.asked is None else self.asked

    def fits(self, spread: LaneSharding, width: int, depth: int, slots: int = 0) -> bool:
        """Whether the state of such a machine (see `total`) is within the limit."""
        return self.total(width, depth, slots) <= self.limit(spread)

    def check(self, spread: LaneSharding, width: int, depth: int, slots: int = 0) -> None:
        """Refuse a machine (see `total`) that does not fit.

        Raises:
            TooLargeError: PCB444, with the largest variables and a machine that does fit.
        """
        if not self.fits(spread, width, depth, slots):
            size, limit = self.total(width, depth, slots), self.limit(spread)
            raise TooLargeError(self._refused(size, limit, width, depth, slots))

    def _refused(self, size: int, limit: int, width: int, depth: int, slots: int) -> Diagnostic:
        lanes = f"{width:,} lane{'' if width == 1 else 's'}" + (f" for {slots:,} inputs" if slots else "")
        title = f"the state of {lanes} takes {amount(size)}, and may take {amount(limit)}"
        parts = sorted(self.parts(width, depth, slots), key=lambda part: -part.size)
        lines = [f"  {part.what}: {amount(part.each)} x {part.many:,} = {amount(part.size)}" for part in parts[:SHOWN]]
        notes = ["\n".join(["the largest:", *lines]), self._source(limit)]
        helps = (
            *self._smaller(limit, width, depth, slots or width),
            f'let it take more: `max_memory="{_at_least(size)}"`',
        )
        return Diagnostic("PCB444", title, notes=tuple(notes), helps=helps)

    def _smaller(self, limit: int, width: int, depth: int, inputs: int) -> tuple[str, ...]:
        """Return a help that names a machine for as many inputs that does fit, or nothing if there is none."""
        widths = [2**k for k in range(width.bit_length()) if 2**k < width]
        whole = [lanes for lanes in widths if self.total(lanes, depth, inputs) <= limit]
        if whole:
            return (f"run fewer lanes at a time: `f.map(..., lanes={whole[-1]})`",)
        parts = [(lanes, k) for lanes in [*widths, width] for k in (256, 64, 16, 4, 1)]
        fit = [(lanes, lanes * k) for lanes, k in parts if self.total(lanes, depth, lanes * (k + 1)) <= limit]
        if not fit:
            return ()
        return (
            f"run fewer lanes at a time, and send inputs in chunks: `f.map(..., lanes={fit[0][0]}, chunk={fit[0][1]})`",
        )

    def _source(self, limit: int) -> str:
        if self.asked is not None:
            return f"the limit on each device is that of `max_memory`, {amount(limit)}"
        return f"the limit is half of the memory that JAX's device has for this machine, {amount(limit)}"

    def stacks(self, depth: int) -> tuple[str, ...]:
        """Return notes on lanes whose stack was full: the limit that keeps stacks from growing, and their content."""
        parts = sorted(self._framed(1, depth), key=lambda part: -part.size)
        shown = ", ".join(f"`{part.what.split('`')[1]}` {amount(part.size)}" for part in parts[:SHOWN])
        whose = "half of the device's memory" if self.asked is None else f"`max_memory`, {amount(self.asked)}"
        return (
            f"stacks twice as deep, beside those that there are, would take more than {whose}",
            f"the stack of each lane takes {amount(self.frame * (depth + 2))}" + (f": {shown}" if shown else ""),
        )

    def parts(self, width: int, depth: int, slots: int) -> Iterator[Part]:
        """Yield the memory of each variable in a machine's state, see `total`."""
        type_ = self.layout.stored_type
        for v in self.layout.registers:
            yield Part(f"`{v}` {type_(v)} in a register of each lane", self._size(v), width)
        yield from self._framed(width, depth)
        if self.layout.frames is not None:
            yield Part("return addresses in frames", 4, width * (depth + 2))
        if slots:
            params = [v for v in self.layout.program.params if v in self.layout.registers]
            for names, what in ((params, "as an input"), (self.layout.program.results, "as a result")):
                yield from (Part(f"`{v}` {type_(v)} {what}", self._size(v), slots) for v in names)

    def _framed(self, width: int, depth: int) -> Iterator[Part]:
        plan = self.layout.frames
        for v, column in {} if plan is None else plan.columns.items():
            each = (column.stop - column.start) * plan.dtype(column.buffer).itemsize  # type: ignore[union-attr]
            yield Part(f"`{v}` {column.type} in frames, {depth + 2:,} of each lane", each, width * (depth + 2))


def size_of(type_: ArrayType) -> int:
    """Return the bytes of one value of a storage type."""
    return math.prod(type_.shape) * int(jax_dtype(type_).itemsize)


def share_of_device() -> int:
    """Return the bytes that a machine may take on JAX's default device, without `max_memory`."""
    return _of_device(None)


def _at_least(size: int) -> str:
    """Return a round amount of memory that is at least `size` bytes, as the option `max_memory` takes it."""
    unit, name = next((u, n) for u, n in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "")) if size >= u)
    return f"{-(-size // unit)}{name}"


def _of_device(mesh: Any) -> int:
    devices = tuple(mesh.devices.flat) if mesh is not None else (jax.devices()[0],)
    return int(SHARE * min(_memory(device) for device in devices) / _devices_per_memory(devices))


def _devices_per_memory(devices: tuple[Any, ...]) -> int:
    """Return the number of devices that share one memory: all of a CPU's."""
    return len(devices) if devices[0].platform == "cpu" else 1


@cache
def _memory(device: Any) -> int:
    """Return the bytes of a device's memory."""
    stats = None if device.platform == "cpu" else device.memory_stats()
    return int(stats["bytes_limit"]) if stats and "bytes_limit" in stats else _physical()


@cache
def _physical() -> int:
    """Return the bytes of this computer's memory, or of the container that this process runs in."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            size = min(size, int(Path(file).read_text(encoding="ascii")))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return size
