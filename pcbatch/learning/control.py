"""The part of a task program that decides where tasks go: what else blocks compute is left out of a trace.

The hidden states of a tree decide nothing, so that a trace of a TreeLSTM computes no product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pcbatch.ir.forks import conditions, leaves
from pcbatch.ir.ops import Move, Prim, PureOp, Select
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.tasks import (
    Finish,
    Give,
    Spawn,
    SpawnInto,
    Start,
    Sync,
    TaskBlock,
    TaskJump,
    TaskProgram,
    after_jump,
    spawns,
)


@dataclass(frozen=True, slots=True)
class Control:
    """The part of a block that decides where its records go next.

    Attributes:
        params: the parameters that it reads for that.
        ops: the operations, in order.
        sent: the variables that its end needs.
    """

    params: tuple[str, ...]
    ops: tuple[PureOp, ...]
    sent: tuple[str, ...]


def control(program: TaskProgram) -> Mapping[str, Control]:
    """Return the control of each block, by label."""
    return _Slice(program).run()


class _Slice:
    """A fixed point: which parameters and which results of the tasks of a block decide where some task goes."""

    def __init__(self, program: TaskProgram) -> None:
        self.program = program
        self.params: dict[str, frozenset[str]] = {block.label: frozenset() for block in program.blocks}
        self.results: dict[str, frozenset[int]] = {block.label: frozenset() for block in program.blocks}

    def run(self) -> Mapping[str, Control]:
        found: dict[str, Control] = {}
        before: object = None
        while before != (before := (dict(self.params), dict(self.results))):
            awaited = frozenset().union(*(self.params[b.label] for b in self.program.blocks if b.joins))
            for block in self.program.blocks:
                self._spread(block, awaited)
                found[block.label] = self._of(block, awaited)
                self.params[block.label] |= frozenset(found[block.label].params)
        return found

    def _spread(self, block: TaskBlock, awaited: frozenset[str]) -> None:
        """Hand on which results are needed: to what goes on for the task, and to what is started for its frame."""
        mine = self.results[block.label]
        heirs = [*after_jump(block)]
        for op in spawns(block):
            targets = [way.label for way in leaves(op.way) if isinstance(way, Start)]
            if isinstance(op, SpawnInto):
                heirs += targets
                continue
            needed = frozenset(k for k, dst in enumerate(op.dsts) if dst in awaited)
            for label in targets:
                self.results[label] |= needed
        for label in heirs:
            self.results[label] |= mine

    def _of(self, block: TaskBlock, awaited: frozenset[str]) -> Control:
        sent = dict.fromkeys(self._sent(block, awaited))
        wanted, ops = set(sent), []
        for op in reversed([op for op in block.ops if isinstance(op, Prim | Move | Select)]):
            if wanted & set(writes(op)):
                ops.append(op)
                wanted = wanted - set(writes(op)) | set(reads(op))
        params = tuple(param for param in block.params if param in wanted)
        return Control(params, tuple(reversed(ops)), tuple(sent))

    def _sent(self, block: TaskBlock, awaited: frozenset[str]) -> Iterable[str]:
        results = self.results[block.label]
        for op in spawns(block):
            yield from conditions(op.way)
            needed = [k for k, dst in enumerate(op.dsts) if dst in awaited] if isinstance(op, Spawn) else results
            if isinstance(op, Spawn) and op.row is not None and needed:
                yield op.row
            for way in leaves(op.way):
                if isinstance(way, Give):
                    yield from (way.values[k] for k in sorted(needed))
                elif isinstance(way, Start):
                    yield from (source for param, source in way.args if param in self.params[way.label])
        yield from conditions(block.terminator)
        for leaf in leaves(block.terminator):
            match leaf:
                case TaskJump(target=target, args=args) | Sync(target=target, args=args):
                    yield from (source for param, source in args if param in self.params[target])
                case Finish(values=values):
                    yield from (values[k] for k in sorted(results))
