"""Checks of bytecode: whether a function may catch an exception that ends it, and whether one line may take long."""

from __future__ import annotations

import dis
import inspect
import types
from collections.abc import Iterable, Sequence

LONG = frozenset({
    *("factorial", "comb", "perm", "repeat", "zfill", "ljust", "rjust", "center", "islice", "pow"),
})  # fmt: skip
"""Names of functions that take as long as a number is large, or longer."""
GROWING = ("**", "<<", "**=", "<<=")
NEAR = 6  # steps from a list or a text to the `*` that repeats it, at most
_ENDS = ("RERAISE", "POP_EXCEPT", "RETURN_VALUE", "RETURN_CONST")


def may_catch_all(steps: Sequence[dis.Instruction], code: types.CodeType) -> bool:
    """Return whether code may catch an exception of any class: by `except:`, or by `finally` that goes on elsewhere."""
    is_generator = bool(code.co_flags & inspect.CO_GENERATOR)  # which may be closed, and catches that
    return any(
        step.opname == "PUSH_EXC_INFO" and (is_generator or _goes_on(steps[k + 1 :])) for k, step in enumerate(steps)
    )


def _goes_on(handler: Iterable[dis.Instruction]) -> bool:
    """Whether a handler asks for no class and does not raise again."""
    ends = (step.opname for step in handler if step.opname in _ENDS or step.opname == "CHECK_EXC_MATCH")
    return next(ends, "RERAISE") not in ("RERAISE", "CHECK_EXC_MATCH")


def may_take_long(steps: Sequence[dis.Instruction]) -> bool:
    """Return whether one line may take long where a number is large: by as many elements, or digits."""
    return any(_takes_long(steps, k) for k in range(len(steps)))


def _takes_long(steps: Sequence[dis.Instruction], k: int) -> bool:
    step = steps[k]
    if step.opname.startswith("LOAD_") and step.argval in LONG:
        return True
    if step.opname == "LOAD_GLOBAL" and step.argval == "range":
        return not _is_looped_over(steps, k)
    if step.opname != "BINARY_OP":
        return False
    if step.argrepr in GROWING:
        return steps[k - 1].opname not in ("LOAD_CONST", "LOAD_SMALL_INT")
    before = steps[max(0, k - NEAR) : k]
    return step.argrepr.startswith("*") and any(
        each.opname == "BUILD_LIST" or (each.opname == "LOAD_CONST" and isinstance(each.argval, str)) for each in before
    )


def _is_looped_over(steps: Sequence[dis.Instruction], k: int) -> bool:
    """Whether the result of a call is what a loop goes over, and nothing else."""
    depth = 0
    for at in range(k, len(steps)):
        step = steps[at]
        if "JUMP" in step.opname:
            return False
        depth += dis.stack_effect(step.opcode, step.arg)
        if step.opname.startswith("CALL") and depth <= 1:
            return steps[at + 1].opname == "GET_ITER"
    return False
