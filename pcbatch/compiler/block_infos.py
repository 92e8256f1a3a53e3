"""The functions and lines that the blocks of a program come from, for statistics and messages."""

from __future__ import annotations

from collections.abc import Sequence

from pcbatch.call.results import BlockStats
from pcbatch.ir.analysis.def_use import AnyOp
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.tasks import TaskOp, TaskProgram


def block_infos(program: StackProgram | TaskProgram) -> tuple[BlockStats, ...]:
    """The functions and lines that every block comes from."""
    return tuple(_info(block.label, block.function, block.ops) for block in program.blocks)


def cfg_block_infos(program: CfgProgram) -> tuple[BlockStats, ...]:
    """The functions and lines that every block of a CFG comes from."""
    return tuple(_info(f"{f.name}:{block.label}", f.name, block.ops) for f in program.functions for block in f.blocks)


def _info(label: str, function: str, ops: Sequence[AnyOp | TaskOp]) -> BlockStats:
    locs = (getattr(op, "loc", None) for op in ops)
    lines = sorted({loc.line for loc in locs if loc is not None})
    texts = tuple(op.expr.text for op in ops if isinstance(op, Prim))
    sources = tuple(op.expr.written for op in ops if isinstance(op, Prim) and op.expr.written is not None)
    return BlockStats(label, function, tuple(lines), texts, sources=sources)
