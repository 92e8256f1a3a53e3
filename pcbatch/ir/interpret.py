"""The slow reference interpreter of CFG programs, which defines their meaning for ONE lane.

It keeps no registers, masks or buffers: an activation is a dict of variables, and reading a variable without a value is
an error. (Those of the other forms are oracles of the tests: `tests/oracles/interpret_stack.py`, `interpret_tasks.py`.)

A `print` prints, and a `fail` raises `LaneFailed`. Values are whatever the operations compute with: Python numbers,
NumPy or JAX arrays.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from pcbatch.errors import InternalError
from pcbatch.ir import message as messages
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.ops import RETURN, Branch, Check, EffectOp, Expr, Fail, Jump, Move, Prim, Print, PureOp, Return, Select

Values = MutableMapping[str, Any]


class LaneError(Exception):
    """A lane that did not return; base of the errors of the interpreters."""


class LaneFailed(LaneError):
    """A lane that reached a `fail`."""

    def __init__(self, kind: str, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}" if message else name)
        self.kind, self.name, self.message = kind, name, message


class StepLimit(LaneError):
    """A lane that ran more blocks, or more calls, than it may."""


@dataclass(slots=True)
class Watch:
    """A watch over a run, told of each step. That of tests counts more (`tests/oracles/interpret_cfg.py`)."""

    max_steps: int
    steps: int = 0

    def block(self, name: str) -> None:
        """Note the start of a block; raises StepLimit beyond `max_steps`."""
        self.steps += 1
        if self.steps > self.max_steps:
            raise StepLimit(f"more than {self.max_steps} blocks")

    def call(self, depth: int) -> None:
        """Note the start of a call, after which `depth` calls are open."""

    def function(self, expr: Expr) -> Callable[..., Any]:
        """Return the function of an expression that is about to be evaluated."""
        assert expr.fn is not None, expr.text
        return expr.fn


def interpret(program: CfgProgram, args: Sequence[Any], watch: Watch) -> tuple[Any, ...]:
    """Return the results of the entry function for one example.

    Raises:
        LaneError: If the lane fails or reaches a limit.
        InternalError: If the program breaks a rule of the IR.
    """
    frame = _Frame.enter(program.function(program.entry), args)
    callers: list[tuple[_Frame, Call]] = []
    watch.block(frame.where)
    while True:
        called = frame.advance(watch)
        if called is not None:
            callers.append((frame, called))
            watch.call(len(callers))
            frame = _Frame.enter(program.function(called.func), [get_value(frame.values, a) for a in called.args])
            watch.block(frame.where)
            continue
        results = tuple(get_value(frame.values, name) for name in frame.function.results)
        if not callers:
            return results
        frame, called = callers.pop()
        _assign(frame.values, called.dsts, results)


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

    def advance(self, watch: Watch) -> Call | None:
        """Run until the next call, which is returned, or the return of this function."""
        blocks = {block.label: block for block in self.function.blocks}
        while True:
            block = blocks[self.label]
            while self.position < len(block.ops):
                op = block.ops[self.position]
                self.position += 1
                if isinstance(op, Call):
                    return op
                run_op(op, self.values, watch)
            target = next_label(block.terminator, self.values)
            if target is None:
                return None
            self.label, self.position = target, 0
            watch.block(self.where)


def next_label(terminator: Jump | Branch | Return | Fail, values: Values) -> str | None:
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


def run_op(op: PureOp | EffectOp | Check, values: Values, watch: Watch) -> None:
    """Run an operation that is no call, push or pop, on the values of variables."""
    match op:
        case Prim(dsts=dsts, expr=expr):
            value = watch.function(expr)(*(get_value(values, name) for name in expr.ins))
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
