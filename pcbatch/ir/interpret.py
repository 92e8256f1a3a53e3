"""Slow reference interpreters, which define the meaning of a program for ONE lane: oracles of the tests.

They keep no registers, masks or buffers: a CFG activation is a dict of variables; a stack lane is one dict of
variables, one dict of slots per frame, and a list of return points. Variables without a register are forgotten
at the end of each block, and reading a variable without a value is an error, so that a pass which stores a value in the
wrong place is detected even where the batched program would happen to work.

A `print` prints, and a `fail` raises `LaneFailed`. Values are whatever the operations compute with: Python numbers,
NumPy or JAX arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from pcbatch.errors import InternalError
from pcbatch.ir import message as messages
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.expr_text import as_function
from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import RETURN, Branch, Check, Expr, Fail, Jump, Move, Prim, Print, PureOp, Return, Select
from pcbatch.ir.stack import Pop, Push, PushJump, StackBlock, StackOp, StackProgram, StackTerminator, Storage

Values = MutableMapping[str, Any]


class LaneError(Exception):
    """A lane that did not return; base of the errors of the interpreters."""


class LaneFailed(LaneError):
    """A lane that reached a `fail`."""

    def __init__(self, kind: str, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}" if message else name)
        self.kind, self.name, self.message = kind, name, message


class StackFull(LaneError):
    """A lane that needed more than `max_depth` nested calls."""


class StepLimit(LaneError):
    """A lane that ran more than `max_steps` blocks or `max_calls` calls."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The counters of a run. Blocks of a CFG program are named `function:label`, those of a stack program by label."""

    blocks: Mapping[str, int]
    texts: Mapping[str, int]
    pushes: int
    pops: int
    pushjumps: int
    max_depth: int


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

    Raises:
        LaneError: If the lane fails or reaches a limit.
        InternalError: If the program breaks a rule of the IR.
    """
    count = Counts(namespace or {}, max_steps, max_calls, max_depth)
    frame = _Frame.enter(program.function(program.entry), args)
    callers: list[tuple[_Frame, Call]] = []
    count.block(frame.where)
    while True:
        called = frame.advance(count)
        if called is not None:
            callers.append((frame, called))
            count.call(len(callers))
            frame = _Frame.enter(program.function(called.func), [get_value(frame.values, a) for a in called.args])
            count.block(frame.where)
            continue
        results = tuple(get_value(frame.values, name) for name in frame.function.results)
        if not callers:
            return results, count.trace()
        frame, called = callers.pop()
        _assign(frame.values, called.dsts, results)


def interpret_stack(
    program: StackProgram,
    args: Sequence[Any],
    namespace: Mapping[str, Any] | None = None,
    max_steps: int = 10_000_000,
    *,
    max_depth: int | None = None,
) -> tuple[tuple[Any, ...], Trace]:
    """Run a stack program on one example; arguments, results and errors as for `interpret_cfg`.

    Depth is the number of open frames.
    """
    count = Counts(namespace or {}, max_steps, None, max_depth)
    lane = _Lane(dict(zip(program.params, args, strict=True)))
    blocks = {block.label: block for block in program.blocks}
    for op in program.prologue:
        run_op(op, lane.values, count)
    label: str | None = program.entry
    while label is not None:
        count.block(label)
        label = lane.run(blocks[label], program, count)
    return tuple(get_value(lane.values, name) for name in program.results), count.trace()


@dataclass(slots=True)
class Counts:
    """The counters and limits of a run, and the names that texts may use."""

    namespace: Mapping[str, Any]
    max_steps: int
    max_calls: int | None
    max_depth: int | None
    steps: int = 0
    blocks: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    pushes: int = 0
    pops: int = 0
    calls: int = 0
    depth: int = 0

    def block(self, name: str) -> None:
        """Count the start of a block."""
        self.steps += 1
        if self.steps > self.max_steps:
            raise StepLimit(f"more than {self.max_steps} blocks")
        self.blocks[name] += 1

    def call(self, depth: int) -> None:
        """Count the start of a call, after which `depth` calls are open."""
        if self.max_depth is not None and depth > self.max_depth:
            raise StackFull(f"more than {self.max_depth} nested calls")
        self.calls += 1
        if self.max_calls is not None and self.calls > self.max_calls:
            raise StepLimit(f"more than {self.max_calls} calls")
        self.depth = max(self.depth, depth)

    def trace(self) -> Trace:
        """Return the counters of the run."""
        return Trace(dict(self.blocks), dict(self.texts), self.pushes, self.pops, self.calls, self.depth)


@dataclass(slots=True)
class _Frame:
    """One activation of a CFG function."""

    function: Function
    values: Values
    label: str
    position: int = 0

    @classmethod
    def enter(cls, function: Function, args: Sequence[Any]) -> _Frame:
        values = dict(zip(function.params, args, strict=True))
        return cls(function, values, function.blocks[0].label)

    @property
    def where(self) -> str:
        return f"{self.function.name}:{self.label}"

    def advance(self, count: Counts) -> Call | None:
        """Run until the next call, which is returned, or the return of this function."""
        blocks = {block.label: block for block in self.function.blocks}
        while True:
            block = blocks[self.label]
            while self.position < len(block.ops):
                op = block.ops[self.position]
                self.position += 1
                if isinstance(op, Call):
                    return op
                run_op(op, self.values, count)
            target = _next(block.terminator, self.values)
            if target is None:
                return None
            self.label, self.position = target, 0
            count.block(self.where)


@dataclass(slots=True)
class _Lane:
    """The state of a stack program for one lane; the last dict of `slots` belongs to the current activation."""

    values: dict[str, Any]
    slots: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    returns: list[str] = field(default_factory=list)

    def run(self, block: StackBlock, program: StackProgram, count: Counts) -> str | None:
        """Run a block; return the label of the next one, None at the outermost return."""
        for op in block.ops:
            self._op(op, count)
        target = self._jump(block.terminator, count)
        for name in [name for name in self.values if _is_local(program, name)]:
            del self.values[name]
        return target

    def _op(self, op: StackOp, count: Counts) -> None:
        match op:
            case Push(dst=dst, src=src):
                count.pushes += 1
                self.slots[-1][dst] = get_value(self.values, src)
            case Pop(dst=dst):
                count.pops += 1
                if dst not in self.slots[-1]:
                    raise InternalError(f"pop {dst}: its slot is empty")
                self.values[dst] = self.slots[-1][dst]
            case _:
                run_op(op, self.values, count)

    def _jump(self, terminator: StackTerminator, count: Counts) -> str | None:
        while isinstance(terminator, Fork):
            taken = bool(get_value(self.values, terminator.cond))
            terminator = terminator.on_true if taken else terminator.on_false
        if isinstance(terminator, PushJump):
            count.call(len(self.returns) + 1)
            self.returns.append(terminator.ret)
            self.slots.append({})
            return terminator.target
        target = _next(terminator, self.values)
        if target is not None or not self.returns:
            return target
        self.slots.pop()
        return self.returns.pop()


def _is_local(program: StackProgram, name: str) -> bool:
    var = program.vars.get(name)
    return var is not None and var.storage in (Storage.TEMP, Storage.STACK)


def _next(terminator: Jump | Branch | Return | Fail, values: Values) -> str | None:
    """The next label in this activation; None if it returns."""
    match terminator:
        case Jump(target=target):
            return target
        case Branch():
            target = terminator.on_true if bool(get_value(values, terminator.cond)) else terminator.on_false
            return None if target == RETURN else target
        case Return():
            return None
        case Fail(kind=kind, name=name, message=message):
            raise LaneFailed(kind, name, message_text(message, values))
        case _:
            assert_never(terminator)


def message_text(message: messages.Message, values: Values) -> str:
    """Return what a message shows."""
    return messages.text(message, {name: get_value(values, name) for name in messages.variables(message)})


def run_op(op: PureOp | Print | Check, values: Values, count: Counts) -> None:
    """Run an operation that is no call, push or pop, on the values of variables."""
    match op:
        case Prim(dsts=dsts, expr=expr):
            count.texts[expr.text] += 1
            value = _function(expr, count)(*(get_value(values, name) for name in expr.ins))
            _assign(values, dsts, (value,) if len(dsts) == 1 else tuple(value) if dsts else ())
        case Move(dst=dst, src=src):
            values[dst] = get_value(values, src)
        case Select():
            chosen = op.on_true if bool(get_value(values, op.cond)) else op.on_false
            values[op.dst] = get_value(values, chosen)
        case Print(message=message):
            print(message_text(message, values), end="")
        case Check():
            if bool(get_value(values, op.failed)):
                raise LaneFailed(op.kind, op.name, message_text(op.message, values))
        case _:
            assert_never(op)


def _function(expr: Expr, count: Counts) -> Any:
    return expr.fn if expr.fn is not None else as_function(expr.text, expr.ins, count.namespace)


def _assign(values: Values, dsts: Sequence[str], results: Sequence[Any]) -> None:
    if len(dsts) != len(results):
        raise InternalError(f"{len(results)} values for {len(dsts)} destinations ({', '.join(dsts)})")
    values.update(zip(dsts, results, strict=True))


def get_value(values: Values, name: str) -> Any:
    """Return the value of a variable, which must have one."""
    try:
        return values[name]
    except KeyError:
        raise InternalError(f"{name} is read before it is written") from None
