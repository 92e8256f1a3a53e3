"""The reference interpreter of CFG programs (`pcbatch/ir/interpret.py`) with counters, and texts for functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.interpret import LaneError, StepLimit, Watch, interpret
from pcbatch.ir.interpret import LaneFailed as LaneFailed
from pcbatch.ir.ops import Expr
from tests.oracles.text.functions import as_function


class StackFull(LaneError):
    """A lane that needed more than `max_depth` nested calls."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The counters of a run. Blocks of a CFG program are named `function:label`, those of a stack program by label."""

    blocks: Mapping[str, int]
    texts: Mapping[str, int]
    pushes: int
    pops: int
    pushjumps: int
    max_depth: int


@dataclass(slots=True)
class Counts(Watch):
    """The counters and limits of a run, and the names that texts may use."""

    namespace: Mapping[str, Any] = field(default_factory=dict)
    max_calls: int | None = None
    max_depth: int | None = None
    blocks: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    pushes: int = 0
    pops: int = 0
    calls: int = 0
    depth: int = 0

    def block(self, name: str) -> None:
        """Count the start of a block."""
        Watch.block(self, name)
        self.blocks[name] += 1

    def call(self, depth: int) -> None:
        """Count the start of a call, after which `depth` calls are open."""
        if self.max_depth is not None and depth > self.max_depth:
            raise StackFull(f"more than {self.max_depth} nested calls")
        self.calls += 1
        if self.max_calls is not None and self.calls > self.max_calls:
            raise StepLimit(f"more than {self.max_calls} calls")
        self.depth = max(self.depth, depth)

    def function(self, expr: Expr) -> Callable[..., Any]:
        """Count an evaluation; the text stands for the function of a parsed program."""
        self.texts[expr.text] += 1
        return expr.fn if expr.fn is not None else as_function(expr.text, expr.ins, self.namespace)

    def trace(self) -> Trace:
        """Return the counters of the run."""
        return Trace(dict(self.blocks), dict(self.texts), self.pushes, self.pops, self.calls, self.depth)


def interpret_cfg(
    program: CfgProgram,
    args: Sequence[Any],
    namespace: Mapping[str, Any] | None = None,
    max_calls: int = 100_000,
    *,
    max_depth: int | None = None,
    max_steps: int = 10_000_000,
) -> tuple[tuple[Any, ...], Trace]:
    """Run a CFG program on one example.

    Args:
        program: The program; its entry function is run.
        args: The values of the entry's parameters.
        namespace: The values of names in texts that have no function (see `ops.Expr`).
        max_calls: The number of calls after which `StepLimit` is raised.
        max_depth: The number of nested calls beyond which `StackFull` is raised; None for no limit.
        max_steps: The number of blocks after which `StepLimit` is raised.

    Returns:
        The results, and the counters of the run, where `pushjumps` counts calls.
    """
    count = Counts(max_steps, namespace=namespace or {}, max_calls=max_calls, max_depth=max_depth)
    return interpret(program, args, count), count.trace()
