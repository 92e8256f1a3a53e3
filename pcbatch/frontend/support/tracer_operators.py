"""Python's operators on tracers in code that is not compiled: properties, functions without source, other packages.

In lane code and in copies of helpers an operator is a call of `python_numbers`. All other code computes on the tracers
themselves, as if they were arrays. Where that differs from the numbers that they stand for, it is refused; the results
may be numbers of Python or arrays.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import jax
import jax.extend.source_info_util
import numpy as np

from pcbatch.data.functions import libraries, python_numbers
from pcbatch.data.functions.texts import no_text
from pcbatch.data.functions.users_code import LIBRARIES
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.object_parts import is_user_code
from pcbatch.data.objects.reference import Ref
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin, Tracer, is_noted, is_noting, note, source_of
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.values import Value
from pcbatch.errors import Refusal
from pcbatch.frontend.source.tree import SUPPORT

jax.extend.source_info_util.register_exclusion(__file__)

FOLDERS = tuple(str(Path(str(file)).parent) + "/" for file in (__file__, libraries.__file__))
BINARY = "add sub mul floordiv mod lshift rshift truediv and or xor".split()
COMPARISONS = "eq ne lt le gt ge".split()
UNARY = "neg pos abs invert".split()
COUNTING = frozenset("add sub mul floordiv mod lshift rshift pow neg pos abs invert".split())
NAMES = {"and": "and_", "or": "or_", "pow": "power", "abs": "abs_"}
OPERANDS = (Tracer, bool, int, float, complex, np.generic, np.ndarray, jax.Array)
OF_LANES = (Tracer, Entries, LaneList, LaneText, Optional, Ref)
PRIMITIVES: dict[str, Callable[[Value, Value], Value]] = {
    "__add__": jax.lax.add, "__sub__": jax.lax.sub, "__mul__": jax.lax.mul,
    "__and__": jax.lax.bitwise_and, "__or__": jax.lax.bitwise_or, "__xor__": jax.lax.bitwise_xor,
    "__eq__": jax.lax.eq, "__ne__": jax.lax.ne, "__lt__": jax.lax.lt,
    "__le__": jax.lax.le, "__gt__": jax.lax.gt, "__ge__": jax.lax.ge,
}  # fmt: skip
HELP = "count with `jnp.where(c, 1, 0)` in place of the bool `c`"


@functools.cache
def check_tracers() -> None:
    """Wrap the operators of JAX's tracers, once, so that they check their caller while a primitive is traced."""
    for name in (*BINARY, *COMPARISONS, *UNARY, "pow"):
        operator = getattr(python_numbers, NAMES.get(name, name))
        _check(f"__{name}__", name, operator)
        if name in BINARY or name == "pow":
            _check(f"__r{name}__", name, functools.partial(_reflected, operator))
    for cls in OF_LANES:
        _check_text(cls, "__repr__")
    _check_text(Tracer, "__format__")


def _check_text(cls: type, dunder: str) -> None:
    """Wrap a method that makes text: code of the user would get the text of the tracer itself."""
    method = getattr(cls, dunder)

    @functools.wraps(method)
    def checked(self: Value, *spec: str) -> str:
        if is_noting() and is_user_code(_caller(sys._getframe(1))):
            raise no_text()
        made: str = method(self, *spec)
        return made

    setattr(cls, dunder, checked)


def _reflected(operator: Callable[[Value, Value], Value], a: Value, b: Value) -> Value:
    return operator(b, a)


def _check(dunder: str, name: str, operator: Callable[..., Value]) -> None:
    """Wrap the method `dunder` of tracers; `operator` computes the same for numbers of Python."""
    method = getattr(Tracer, dunder)
    primitive = PRIMITIVES.get(dunder)

    @functools.wraps(method)
    def plain(self: Value, *other: Value) -> Value:
        if primitive is not None and len(other) == 1 and _are_alike(self, other[0]):
            return primitive(self, other[0])
        return method(self, *other)

    @functools.wraps(method)
    def checked(self: Value, *other: Value) -> Value:
        values = (self, *other)
        if not is_noting() or not any(map(_is_number, values)) or not all(isinstance(v, OPERANDS) for v in values):
            return plain(self, *other)
        frame = sys._getframe(1)
        if _root(frame) in LIBRARIES:
            return plain(self, *other)
        if SUPPORT in frame.f_code.co_freevars:  # an augmented assignment (see `right_operand`)
            return operator(*values)
        return _in_other_code(name, operator, values)

    checked.operator = operator  # type: ignore[attr-defined]
    setattr(Tracer, dunder, checked)


def _are_alike(a: Value, b: Value) -> bool:
    """Whether two numbers or arrays have one type, so that an operator is its primitive, which takes JAX less to trace
    than to find."""
    if not isinstance(b, Tracer):
        return False
    one: Any = a.aval
    other: Any = b.aval
    return (
        one.shape == other.shape
        and one.dtype == other.dtype
        and one.dtype.kind in "iuf"
        and not (one.weak_type or other.weak_type)
    )


def _caller(frame: FrameType) -> CodeType:
    """The code that calls a function of Python's, or a support function that does."""
    while frame.f_code.co_filename.startswith(FOLDERS) and frame.f_back is not None:
        if frame.f_code.co_filename == libraries.__file__:  # NumPy makes the text, of an error
            break
        frame = frame.f_back
    return frame.f_code


def _in_other_code(name: str, operator: Callable[..., Value], values: tuple[Value, ...]) -> Value:
    """Compute an operator in code that is not compiled; refuses bools that count if they are Python's own."""
    if name in COUNTING and all(map(python_numbers.is_bool, values)):
        title = "a bool is a number here if it is Python's own, which is not known in code that is not compiled"
        reason = "functions without source, those of other packages and some methods that Python calls run as they are"
        raise Refusal("PCB303", title, reason, helps=(HELP,))
    result = operator(*values)
    if isinstance(result, Tracer) and source_of(result) is not Origin.ARRAY:
        note(result, Origin.UNKNOWN)
    return result


def _is_number(value: Value) -> bool:
    """Whether a value is a tracer that may stand for a number of Python."""
    return isinstance(value, Tracer) and is_noted(value) and source_of(value) is not Origin.ARRAY


def _root(frame: FrameType) -> str:
    """The package whose code runs in a frame."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
