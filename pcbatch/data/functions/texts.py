"""The builtins that make or read text, for values of a lane: texts of the lane (`data/texts/lane_text.py`)."""

from __future__ import annotations

import dataclasses
import itertools
import operator
import re
import string
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import jax
import jax.extend.source_info_util
import jax.numpy as jnp
import numpy as np

from pcbatch.contexts import setting
from pcbatch.data.aliasing import holds_same, note_copy, note_value
from pcbatch.data.checks import only_where, require
from pcbatch.data.elements import or_else
from pcbatch.data.functions import object_texts
from pcbatch.data.functions.math_functions.reals import to_integer
from pcbatch.data.functions.object_texts import parts_of_text
from pcbatch.data.functions.users_code import own_text
from pcbatch.data.members import MemberValue
from pcbatch.data.objects.ref_type import as_class, is_array
from pcbatch.data.objects.reference import Ref
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin, Tracer, number, of_lane, origin_of
from pcbatch.data.rounding import once, to_float
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.texts import float_texts
from pcbatch.data.texts.format_specs import note_number, parts_of
from pcbatch.data.texts.known_texts import EITHER, EITHER_HELPS, MIXED, MIXED_HELPS, OUTSIDE
from pcbatch.data.texts.known_texts import no_text as no_text
from pcbatch.data.texts.lane_bytes import LaneBytes
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.texts.quoted import quoted
from pcbatch.data.texts.text import Text, as_text, joined
from pcbatch.data.texts.text_numbers import grouped, text_of_bool, text_of_integer
from pcbatch.data.values import Flag, Index, Value
from pcbatch.errors import Refusal

jax.extend.source_info_util.register_exclusion(__file__)

BASES = {"b": 2, "o": 8, "x": 16, "X": 16, "d": 10, "": 10}
PERCENT = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<most>(?:\.\d+)?)(?P<kind>[sradiufFeEgGxXo%])")
DECIMAL = frozenset("fFeEgG%")  # the kinds of formats that floats have, and integers as floats
FORMATTER = string.Formatter()
CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda value: value, 115: str, 114: repr, 97: ascii}
FORMAT_HELP = (
    "of an integer of the lane there are widths, signs, `,` and `_`, and the kinds d, b, o, x and X, "
    "of a float widths, signs, `,` and the kinds f, e, g and %, with no more digits than tell floats apart"
)


def is_whole(value: Value) -> bool:
    """Whether a value is an integer or a bool of a lane."""
    return (
        isinstance(value, Tracer)
        and value.shape == ()
        and (jnp.issubdtype(value.dtype, jnp.integer) or value.dtype == np.bool_)
    )


def is_float(value: Value) -> bool:
    """Whether a value is a float of a lane that has a text."""
    return isinstance(value, Tracer) and value.shape == () and float_texts.has_text(value.dtype)


_within: ContextVar[tuple[Any, ...]] = ContextVar("pcbatch_texts_within", default=())
"""The types of records that may be None and whose text is made."""
STR, REPR = ("__str__", "__repr__"), ("__repr__",)
"""The methods that make the text of an object, the first that it has."""


def text(value: Value, methods: tuple[str, ...] = STR) -> Value:
    """Return `str(value)` of a number, a bool, a text or an object of a lane, or of a Python value; None for others.

    `methods` are those of the user's that make the text of an object.
    """
    if isinstance(value, LaneText):
        return value if methods == STR else quoted(value)
    if is_whole(value):
        if origin_of(value) is Origin.MIXED:  # `True` and `1` are equal, their texts are not
            raise Refusal("PCB304", MIXED, helps=MIXED_HELPS)
        return text_of_bool(value) if value.dtype == np.bool_ else text_of_integer(value)
    if is_float(value):
        if origin_of(value) in (Origin.UNKNOWN, Origin.MIXED):  # `2` and `2.0` are equal, their texts are not
            raise Refusal("PCB304", EITHER, helps=EITHER_HELPS)
        return float_texts.shortest(value)
    if (sure := _if_present(value)) is not None:
        return _or_none(*sure, methods)
    shown = is_shown_of_lane(value)
    parts = parts_of_text(value, object_texts.STR if methods == STR else object_texts.REPR) if shown else None
    made = own_text(value, *methods) if parts is None else template(*parts)
    return (None if shown else str(value)) if made is None else made


def _if_present(value: Value) -> tuple[Flag, Value] | None:
    """Return whether there is a value that may be None in a lane, and the value itself; None for other values."""
    if isinstance(value, Optional):
        return value.present, value.value
    if not isinstance(value, Ref) or is_array(value):
        return None
    type_ = value.pcbatch_type
    return (value.pcbatch_id >= 0, as_class(value, object)) if type_.optional and type_.classes else None


def _or_none(present: Flag, value: Value, methods: tuple[str, ...]) -> Text | None:
    """Return the text of a value, "None" in lanes where there is none."""
    if type(value) is Ref and value.pcbatch_type in _within.get():
        raise no_text()  # an object that shows others like it: as many as there are in a lane
    within = (*_within.get(), value.pcbatch_type) if type(value) is Ref else _within.get()
    with setting(_within, within), only_where(lambda: present):
        shown = as_text(text(value, methods))
    if shown is None:
        return None
    return as_text(or_else(present, shown, "None"))


def in_base(builtin: Callable[[Value], str], base: int) -> Callable[[Value], Value]:
    """Return the builtin `bin`, `oct` or `hex`."""

    def run(value: Value, /) -> Value:
        if not isinstance(value, Tracer):
            return builtin(value)
        if not is_whole(value):
            raise TypeError(f"'{value.dtype}' object cannot be interpreted as an integer")
        return text_of_integer(value, base)

    run.__name__ = f"{builtin.__name__}_"
    return run


bin_, oct_, hex_ = in_base(bin, 2), in_base(oct, 8), in_base(hex, 16)


def ord_(character: Value, /) -> Value:
    """The builtin `ord`, also for texts of the lane."""
    if not isinstance(character, LaneText):
        return ord(character)
    expected = "ord() expected a character, but string of length "
    require(character.length == 1, "TypeError", expected, character.length, " found")
    return number(character.codes[0])


def chr_(code: Index, /) -> Value:
    """The builtin `chr`, also for numbers of the lane."""
    if not isinstance(code, Tracer):
        return chr(code)
    if not is_whole(code):
        raise TypeError(f"'{code.dtype}' object cannot be interpreted as an integer")
    holds = jnp.logical_and(code >= 0, code <= 0x10FFFF)
    require(holds, "ValueError", "chr() arg not in range(0x110000)")
    return LaneText.made(jnp.clip(code, 0, 0x10FFFF).astype(np.int32).reshape(1), 1)


def formatted(value: Value, spec: Value) -> Value:
    """Return `format(value, spec)` of a number or a text of a lane, or of any value with a width of a lane."""
    if isinstance(spec, str) and not spec:
        return text(value)
    (parts, width), whole = parts_of(spec), None
    if is_whole(value) and parts is not None and parts["kind"] in DECIMAL:
        whole = value.astype(np.int32) if value.dtype.itemsize < 4 else value
        value = to_float(whole)
    of_text, of_float = isinstance(value, LaneText | str), is_float(value)
    fits = _fits_text if of_text else _fits_float if of_float else _fits_integer
    if parts is None or not fits(parts, value):
        raise Refusal("PCB304", f"the format {spec!r} of a value of the lane", helps=(OUTSIDE, FORMAT_HELP))
    if of_text:
        value = as_text(value[: int(parts["most"])] if parts["most"] else value)
    else:
        value = _decimals(value, parts, whole) if of_float else _digits(value, parts)
    if not parts["width"]:
        return value
    align = parts["align"]
    if parts["zero"] and not align and not of_text:
        if parts["group"]:
            return value
        return _zeros_behind_space(value, width) if parts["sign"] == " " else value.zfill(width)
    fill = parts["fill"] or ("0" if parts["zero"] else " ")
    if align == "^":
        return value.centred(width, fill)
    left = align == "<" or (of_text and not align)
    return value.ljust(width, fill) if left else value.rjust(width, fill)


def _zeros_behind_space(value: LaneText, width: Index) -> LaneText:
    """Return the text of a number with zeros up to a width behind its sign, which is a space or `-`."""
    spaced = (value.codes[0] == ord(" ")) & (value.length > 0)
    first = jnp.where(spaced, ord("+"), value.codes[0])
    filled = LaneText.made(value.codes.at[0].set(first), value.length).zfill(width)
    return LaneText.made(filled.codes.at[0].set(jnp.where(spaced, ord(" "), filled.codes[0])), filled.length)


def _fits_float(parts: re.Match[str], value: Value) -> bool:
    """Whether a float has the format: by its shortest digits, with a number of digits, or of decimal places."""
    kind, most, size = parts["kind"].lower(), parts["most"], value.dtype.itemsize
    if kind not in ("", *DECIMAL) or parts["hash"] or (parts["zero"] and parts["group"]):
        return False
    if not kind and most is None:
        return not parts["group"]
    return int(most or 0) <= float_texts.LARGEST[kind][size]


def _decimals(value: Value, parts: re.Match[str], whole: Value) -> LaneText:
    """The text of a float, or of the integer that it has been, in a format, with its sign and marks of thousands."""
    kind, group = parts["kind"].lower(), parts["group"]
    if value.dtype.itemsize == 8:  # it is the float that Python shows
        whole = None
    digits = value if whole is None else whole
    most = 6 if parts["most"] is None else int(parts["most"])
    if kind == "" and origin_of(value) in (Origin.UNKNOWN, Origin.MIXED):
        raise Refusal("PCB304", EITHER, helps=EITHER_HELPS)
    if kind == "":
        shown = text(value) if parts["most"] is None else float_texts.general(value, most, group, is_float=True)
    elif kind == "g":
        shown = float_texts.general(digits, most, group)
    elif kind == "e":
        shown = float_texts.scientific(digits, most)
    elif whole is not None:
        shown = float_texts.fixed_of_integer(whole, most, group, 100 if kind == "%" else 1)
    else:
        scaled = once(operator.mul, "*", value, 100.0) if kind == "%" else value
        shown = float_texts.fixed(scaled, most, group)
    if kind == "%":
        shown = joined(shown, LaneText.known("%"), room=shown.codes.shape[0] + 1)
    if parts["kind"].isupper():
        small = (shown.codes >= ord("a")) & (shown.codes <= ord("z"))
        shown = LaneText.made(jnp.where(small, shown.codes - 32, shown.codes), shown.length)
    return _with_plus(shown, jnp.signbit(value) & ~jnp.isnan(value), parts)


def _with_plus(shown: LaneText, negative: Flag, parts: re.Match[str]) -> LaneText:
    """Return the text of a number with the sign that the format asks for, if it is not negative."""
    if parts["sign"] not in ("+", " "):
        return shown
    sign = LaneText.known(parts["sign"])
    return joined(LaneText.made(sign.codes, jnp.where(negative, 0, 1)), shown, room=shown.codes.shape[0] + 1)


def _fits_text(parts: re.Match[str], value: Value) -> bool:
    return parts["kind"] in ("", "s") and not (parts["zero"] or parts["sign"] or parts["hash"] or parts["group"])


def _fits_integer(parts: re.Match[str], value: Value) -> bool:
    alone = not (parts["zero"] and parts["hash"]) and not (parts["group"] and parts["hash"])
    decimal = parts["group"] != "," or parts["kind"] in ("", "d")
    return is_whole(value) and parts["kind"] in BASES and parts["most"] is None and alone and decimal


def _digits(value: Value, parts: re.Match[str]) -> LaneText:
    """The digits of an integer in a format, with its sign and marks of thousands."""
    kind = parts["kind"]
    whole = value.astype(np.int32) if value.dtype == np.bool_ else value
    shown = text_of_integer(whole, BASES[kind], prefix=bool(parts["hash"]), upper=kind == "X")
    if parts["group"]:
        size = 3 if BASES[kind] == 10 else 4
        if parts["zero"] and parts["width"] and not parts["align"]:  # the zeros are grouped, too
            least = [
                _digits_within(int(parts["width"]) - sign, size) for sign in (bool(parts["sign"] in ("+", " ")), 1)
            ]
            shown = shown.zfill(least[0], least[1] + 1)
        shown = grouped(shown, ord(parts["group"]), size)
    return _with_plus(shown, whole < 0, parts)


def _digits_within(width: int, size: int) -> int:
    """The least number of digits that reach a width with marks between groups of a size."""
    return next(n for n in range(1, width + 2) if n + (n - 1) // size >= width)


def formatting(value: str, args: Value, options: Value) -> Value:
    """Return `value.format(*args, **options)`, of values of the lane too."""
    return template(*_fields(value, args, options, itertools.count()))


def _fields(value: str, args: Value, options: Value, count: Iterator[int]) -> list[Value]:
    """The parts of a text to be formatted, as `template` takes them; `count` numbers those without a name."""
    parts: list[Value] = []
    for literal, name, spec, conversion in FORMATTER.parse(value):
        parts.append(literal)
        if name is None:
            continue
        if not name or name[0] in ".[":
            name = f"{next(count)}{name}"
        made = template(*_fields(spec, args, options, count)) if spec and "{" in spec else spec or ""
        shown = FORMATTER.get_field(name, args, options)[0]
        parts.append((piece(shown), ord(conversion) if conversion else -1, made))
    return parts


def percent(value: str, operand: Value) -> Value:
    """Return `value % operand`, of values of the lane too."""
    operands = operand if isinstance(operand, tuple) else (operand,)
    if isinstance(operand, dict) or not any(map(is_shown_of_lane, operands)):
        return value % operand
    slots = [slot for slot in PERCENT.finditer(value) if slot["kind"] != "%"]
    if len(slots) != len(operands) or "%" in PERCENT.sub("", value):
        raise no_text()
    parts, end, left = [], 0, iter(operands)
    for slot in PERCENT.finditer(value):
        parts.append(value[end : slot.start()])
        end = slot.end()
        parts.append("%" if slot["kind"] == "%" else _slot(slot, next(left)))
    return template(*parts, value[end:])


def _slot(slot: re.Match[str], value: Value) -> Value:
    """The part of a text that a slot of `%` shows, as `template` takes it."""
    if not is_shown_of_lane(value):
        return slot[0] % (value,)
    kind, flags = slot["kind"], slot["flags"]
    if kind in "sra":
        spec = ("<" if "-" in flags else ">") + slot["width"] if slot["width"] else ""
        return piece(value), ord(kind), spec + slot["most"]
    if isinstance(value, LaneText):
        raise TypeError(f"%{kind} format: a real number is required, not str")
    value = number(to_integer(jnp.trunc(value), "int")) if kind in "diu" and is_float(value) else value
    sign = "+" if "+" in flags else " " if " " in flags else ""
    zero = "0" if "0" in flags and "-" not in flags else ""
    spec = ("<" if "-" in flags else "") + sign + ("#" if "#" in flags else "") + zero + slot["width"] + slot["most"]
    return piece(value), -1, spec + ("d" if kind in "iu" else kind)


def is_shown_of_lane(value: Value) -> bool:
    """Return whether a value that becomes text is one of the lane."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and not of_lane(value):  # made in this primitive
        return any(is_shown_of_lane(getattr(value, field.name, None)) for field in dataclasses.fields(value))
    return isinstance(value, Rows) or of_lane(value)


def piece(value: Value) -> Value:
    """Return a value that becomes a part of a text; of values of a lane, numbers, bools and texts can."""
    if isinstance(value, Tracer) and not is_whole(value) and not is_float(value):
        raise no_text()
    return value


def template(*parts: Value) -> Value:
    """Return the text of an f-string: constant texts, and values with conversion and format.

    A part that is no text is a tuple of a value, the code of its conversion and its format.
    """
    shown = [part if isinstance(part, str) else _shown(*part) for part in parts]
    if all(isinstance(part, str) for part in shown):
        return "".join(shown)
    whole: Text | None = None
    for part in shown:
        piece = as_text(part)
        assert piece is not None
        whole = piece if whole is None else joined(whole, piece)
    if whole is not None:
        note_number(whole, parts)
    return whole


def _shown(value: Value, conversion: int, spec: str) -> Value:
    if (sure := _if_present(value)) is not None and (conversion != -1 or not spec):
        made = _or_none(*sure, REPR if conversion in (114, 97) else STR)
        if made is None:
            raise no_text()
        return formatted(made, spec)
    if sure is not None:
        require(sure[0], "TypeError", "unsupported format string passed to NoneType.__format__")
        value = sure[1]
    parts = parts_of_text(value, conversion) if is_shown_of_lane(value) else None
    made = own_text(value, *(REPR if conversion in (114, 97) else STR)) if parts is None else template(*parts)
    if made is not None:
        if spec and conversion == -1 and not isinstance(value, MemberValue):
            raise TypeError(f"unsupported format string passed to {type(value).__name__}.__format__")
        value, conversion = made, -1
    if not is_shown_of_lane(value) and not isinstance(spec, LaneText):
        return format(CONVERSIONS[conversion](value), spec)
    if not isinstance(value, LaneText) and conversion != -1 and (is_whole(value) or is_float(value)):
        value, conversion = text(value), -1
    if isinstance(value, LaneText) and conversion in (114, 97):
        value = quoted(value)
    if type(value) is int and isinstance(spec, LaneText):
        value = number(jnp.asarray(value))
    if not isinstance(value, LaneText | str) and not is_whole(value) and not is_float(value):
        raise no_text()
    return formatted(value, spec)


def chosen(table: dict[Any, Any], key: LaneText | LaneBytes) -> Value:
    """Return the value of a known dict at a text of the lane."""
    names = [name for name in table if isinstance(name, str | bytes)]
    found = jnp.stack([jnp.asarray(key == name) for name in names]) if names else jnp.zeros((1,), bool)
    require(jnp.any(found), "KeyError", "a text that is no key", argument=lambda: key)
    values = note_value(table, holds_same(LaneList.from_list([table[name] for name in names]), table))
    value = values.element(jnp.argmax(found))
    # A text is read anew each time, and nothing changes it: it is no copy to look after.
    return value if isinstance(value, LaneText | LaneBytes) else note_copy(values, value)
