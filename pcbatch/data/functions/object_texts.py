"""The texts that Python makes of objects by itself: of tuples, lists, dataclasses and members of enumerations.

    str(Point(3, n))     ==>      "Point(x=3, y=" + str(n) + ")"

An object becomes the parts of a template: literal texts, and its own parts, each with the code of its conversion.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.data.container import class_for
from pcbatch.data.members import MemberValue
from pcbatch.data.object_parts import fields_in_repr
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.tuples.atoms import leads_to_tuples
from pcbatch.data.objects.tuples.classes import NeedsClasses
from pcbatch.data.objects.tuples.operands import is_atom, text_of_atom
from pcbatch.data.objects.tuples.parts import has_tuples
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.texts.float_texts import has_text, shortest_of
from pcbatch.data.texts.quoted import quoted_rows
from pcbatch.data.texts.text import Text
from pcbatch.data.texts.text_lists import join_texts
from pcbatch.data.texts.text_numbers import text_of_bool, text_of_integer
from pcbatch.data.values import Value

REPR, STR = 114, 115
"""The codes of the conversions `!r` and `!s`."""


def parts_of_text(value: Value, conversion: int) -> list[Value] | None:
    """Return the parts of the text of an object of the lane; None for one of which Python makes no text by itself.

    `conversion` is 114 for `repr`, and others for `str`.
    """
    if isinstance(value, MemberValue):
        return [(_of_member(value, conversion), -1, "")]
    if isinstance(value, Ref) and leads_to_tuples(value):
        if is_atom(value) and conversion != REPR:
            return [(text_of_atom(value), -1, "")]
        if not has_tuples(value) or value.pcbatch_type.optional:
            raise NeedsClasses("its text")
        value = tuple(value)
    if type(value) is tuple:
        inside = _separated([[(part, REPR, "")] for part in value])
        return ["(", *inside, ",)" if len(value) == 1 else ")"]
    if type(value) is list:
        return ["[", *_separated([[(part, REPR, "")] for part in value]), "]"]
    if type(value) is dict:
        return ["{", *_separated([[(key, REPR, ""), ": ", (part, REPR, "")] for key, part in value.items()]), "}"]
    if type(value) is LaneList:
        elements = _of_elements(value)
        return None if elements is None else ["[", (elements, -1, ""), "]"]
    cls = _class_of(value)
    if cls is None:
        return None
    names = _shown_fields(cls, conversion)
    if names is None:
        return None
    title = cls.__name__ if issubclass(cls, tuple) else cls.__qualname__
    shown = [[f"{name}=", (getattr(value, name), REPR, "")] for name in names]
    return [f"{title}(", *_separated(shown), ")"]


def _separated(items: list[list[Value]]) -> list[Value]:
    return [part for k, item in enumerate(items) for part in ([", ", *item] if k else item)]


def _class_of(value: Value) -> type | None:
    """The class of an object; None for a record that may be of several."""
    if isinstance(value, Ref):
        type_ = value.pcbatch_type
        known = len(type_.types) == 1 and not type_.optional and value.pcbatch_id.shape == ()
        return type_.types[0] if known else None
    return None if isinstance(value, Optional | Text) else type(value)


def _shown_fields(cls: Any, conversion: int) -> tuple[str, ...] | None:
    """The fields that the text of an object shows by the `__repr__` that a dataclass or a named tuple has; None if its
    class makes texts by another method."""
    if (conversion != REPR and cls.__str__ is not object.__str__) or cls.__format__ is not object.__format__:
        return None
    return fields_in_repr(cls)


def _of_elements(values: LaneList) -> Text | None:
    """The texts of the numbers or texts in a list, with commas between them; None for other elements."""
    columns = values.columns
    if isinstance(columns, Text):
        rows: Any = quoted_rows(columns, values.length)
    elif isinstance(columns, jax.Array) and columns.ndim == 1 and Origin.MIXED not in values.origins:
        whole = jnp.issubdtype(columns.dtype, jnp.integer)
        make: Any = text_of_integer if whole else text_of_bool if columns.dtype == bool else None
        rows = None if make is None else jax.vmap(make)(columns)
        if has_text(columns.dtype) and Origin.UNKNOWN not in values.origins:
            rows = shortest_of(columns, values.length)
    else:
        return None
    if rows is None:
        return None
    texts: LaneList = LaneList.tree_unflatten((Origin.ARRAY,), (rows, values.length))
    return join_texts(class_for(str).known(", "), texts)


def _of_member(member: MemberValue, conversion: int) -> Value:
    """The text of a member of an enumeration by `repr`, by `str`, or in a format."""
    make: Any = {REPR: repr, STR: str}.get(conversion, format)
    return LaneList.from_list([make(one) for one in member.members]).element(member.index)
