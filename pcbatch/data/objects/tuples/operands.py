"""Records that stand for texts and numbers, as operands: the value that the operator and the other operand ask for.

token.value * 2         the number; a lane in which it is a text stops, as that is a text in Python
token.value - 2         the number; a lane in which it is a text raises TypeError, as Python does
"x" + token.value       the text
"""

from __future__ import annotations

from dataclasses import replace

import jax

from pcbatch.data.checks import limit, require
from pcbatch.data.elements import or_else
from pcbatch.data.objects.attributes import attribute
from pcbatch.data.objects.ref_type import is_in, require_present
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.tuples.classes import AtomValue, NeedsClasses, python_class
from pcbatch.data.optional import unwrapped
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.texts.text_numbers import text_of_integer
from pcbatch.data.values import Value

OF_TEXTS = frozenset({"+", "*", "%", "<", "<=", ">", ">="})
"""Operators that Python has for texts as well."""

BESIDE_NUMBERS = frozenset({"*", "%"})
"""Those of a text and a number."""


def is_atom(value: Value) -> bool:
    """Return whether a value is a reference to a text or a number, and to nothing else."""
    return isinstance(value, Ref) and all(issubclass(cls, AtomValue) for cls in value.pcbatch_type.types)


def plain_operands(sign: str, a: Value, b: Value) -> tuple[Value, Value]:
    """Return the operands of an operator, with texts and numbers in place of records that stand for them."""
    if is_atom(a):
        a = _plain(a, sign, b)
    return a, _plain(b, sign, a) if is_atom(b) else b


def number_of(ref: Ref, sign: str, stops: bool = False) -> Value:
    """Return the number that a record stands for.

    Args:
        ref: the record.
        sign: the operator.
        stops: whether a lane in which it is a text stops, and does not raise.
    """
    return _part(ref, False, sign, stops)


def as_number(value: Value, name: str) -> Value:
    """Return a value that is not None; of what may be a text or a number the number, for the function of a name."""
    value = unwrapped(value)
    return number_of(value, name, stops=True) if is_atom(value) else value


def asked_for(value: Value, text: bool, exception: str, message: str) -> Value:
    """Return the text or the number that a record stands for, where one of both is asked for; other values as they
    are. A lane with the other one raises an exception."""
    if not is_atom(value):
        return value
    found = _classes(value, text)
    if len(found) != 1:
        raise NeedsClasses("what is asked here")
    require_present(value, exception, message)
    require(is_in(value, found), exception, message)
    return _held(value, found)


def text_of_atom(ref: Ref) -> Value:
    """Return the text of a text or an integer that a record stands for."""
    texts, numbers = _classes(ref, True), _classes(ref, False)
    kinds = {python_class(cls) for cls in ref.pcbatch_type.types}
    if ref.pcbatch_type.optional or kinds != {str, int}:
        raise NeedsClasses("its text")
    return or_else(is_in(ref, texts), _held(ref, texts), text_of_integer(_held(ref, numbers)))


def _classes(ref: Ref, text: bool) -> tuple[int, ...]:
    """The numbers of the classes of texts, or of numbers, among those that a record may be of."""
    kinds = zip(ref.pcbatch_type.classes, map(python_class, ref.pcbatch_type.types), strict=True)
    return tuple(c for c, kind in kinds if (kind is str) is text)


def _held(ref: Ref, classes: tuple[int, ...]) -> Value:
    return attribute(ref.typed(replace(ref.pcbatch_type, classes=classes, optional=False)), "value")


def _plain(ref: Ref, sign: str, other: Value) -> Value:
    if isinstance(other, str | LaneText):
        return _part(ref, sign != "*", sign)
    if not (is_atom(other) or jax.tree_util.all_leaves([other])):
        raise NeedsClasses(f"`{sign}`")
    return _part(ref, False, sign, sign in OF_TEXTS if is_atom(other) else sign in BESIDE_NUMBERS)


def _part(ref: Ref, text: bool, sign: str, stops: bool = False) -> Value:
    """The text or the number that a record stands for; a lane with the other one raises or stops."""
    found = _classes(ref, text)
    if len(found) != 1:  # a text alone as well, beside which inference may find a number yet
        raise NeedsClasses(f"`{sign}`")
    require_present(ref, "TypeError", f"unsupported operand type(s) for {sign}: 'NoneType'")
    if len(ref.pcbatch_type.classes) > 1:
        holds = is_in(ref, found)
        if stops:
            limit(holds, f"`{sign}` of a text that a lane finds among numbers: here it computes with numbers alone")
        else:
            require(holds, "TypeError", f"unsupported operand type(s) for {sign}: '{'int' if text else 'str'}'")
    return _held(ref, found)
