"""`f.tape(...)`: how much a gradient records."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from pcbatch.call.arguments import Arguments
from pcbatch.call.usage import usage
from pcbatch.compiler.growth import run_growing
from pcbatch.compiler.program import Program
from pcbatch.diagnostics.tables import number, table
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.local_strategy.executor import needs_pc
from pcbatch.runtime.vm.raw_result import RawResult, is_tracing
from pcbatch.transforms import records_of


@dataclass(frozen=True, slots=True)
class BlockTapeUse:
    """The records of one block.

    Attributes:
        label: its name in the program.
        function: the function that it is of.
        lines: the lines of its source.
        records: their number, of all lanes.
        bytes: the size of one record.
    """

    label: str
    function: str
    lines: tuple[int, ...]
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TapeUse:
    """The result of `f.tape(...)`: the tape of a gradient with respect to all floating arguments. `str()` is a table.

    Attributes:
        lanes: their number.
        blocks: the records of each block that leaves any.
        max_length: the value of the option `max_length` with which the lists, dicts and sets of the lanes have room
            inside `jit`, where they do not grow either; None where there are none.
    """

    lanes: int
    blocks: tuple[BlockTapeUse, ...]
    max_length: int | None = None

    @property
    def max_tape(self) -> int:
        """The least value of the option `max_tape` with which the gradient fits inside `jit`, where tapes do not grow:
        records of the block with most of them, for each lane on average."""
        return max(1, *(-(-block.records // self.lanes) for block in self.blocks)) if self.blocks else 1

    @property
    def bytes(self) -> int:
        """The size of all records in bytes."""
        return sum(block.records * block.bytes for block in self.blocks)

    def __str__(self) -> str:
        head = ("block", "function", "lines", "records", "bytes each")
        rows = [
            (b.label, b.function, ", ".join(map(str, b.lines)), number(b.records), number(b.bytes)) for b in self.blocks
        ]
        options = f"max_tape={self.max_tape}"
        if self.max_length is not None:
            options += f" with max_length={self.max_length}"
        total = f"{number(self.bytes)} bytes for {self.lanes} lanes; {options} holds it inside `jit`"
        return f"{table(head, rows, ('records', 'bytes each'))}\n{total}"


def tape_use(compiled: Program, given: Arguments) -> TapeUse:
    """Run the inputs of a call once, and count the records that a gradient would leave."""
    if not isinstance(compiled.executable, PcExecutable):
        raise needs_pc("`tape`")
    args = compiled.args(given)
    if is_tracing(args):
        help = "call it outside of `jax.jit` and other transformations"
        raise usage("PCB421", "`tape` runs the program, and cannot be traced", help=help)
    if given.lanes == 0:
        return TapeUse(0, ())
    found: list[tuple[list[tuple[str, int, int]], bool]] = []

    def run(program: Program) -> RawResult:
        raw, records, by_tasks = records_of(
            program.program(), {v: jnp.asarray(x) for v, x in args.items()}, given.lanes
        )
        found[:] = [(records, by_tasks)]
        return raw

    program, _ = run_growing(compiled, run)  # a lane that has no room for an element would stop there
    ((records, by_tasks),) = found
    infos = {info.label: info for info in (program.all_infos if by_tasks else program.infos)}
    blocks = tuple(
        BlockTapeUse(label, infos[label].function, infos[label].lines, count, size) for label, count, size in records
    )
    return TapeUse(given.lanes, blocks, program.room.elements if program.may_be_full else None)
