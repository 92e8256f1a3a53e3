"""Helps for changes in place that another variable would show: what to copy, and which name to use."""

from __future__ import annotations

import re

from pcbatch.data.objects.made import made_schema
from pcbatch.data.objects.made_fields import FieldKey
from pcbatch.ir.cfg import Op
from pcbatch.ir.ops import Move, Prim
from pcbatch.lowering.cfg_passes.split_live_ranges import original_name

PART = re.compile(r"[\w.]+(\[[^\[\]]*\])*(\.T)?")  # a variable, or a part of one
VIEW = re.compile(r"[\w.]+\.(keys|values|items)\(\)")  # of a dict
TEMPORARY = re.compile(r"(.*\.)?(t\d+|default_\d+_\d+)(\.n\d+)?")  # `sort.t0.n2`, where a function is written out
COPY_THERE = "take a copy there: `list(xs)` of a list, `xs.copy()` of an array"
INDEX_LOOP = "in a loop, use elements by their places: `for i in range(len(rows)): rows[i].append(x)`"
KEY_LOOP = f"{INDEX_LOOP}; in one over a dict, by its keys: `for k in list(d): v = d[k]`"
RETURN_LATER = (
    "where the result is to show the change, assign what is returned to variables, and return them after the `try` "
    "statement"
)
APART = (
    "make an object for each place: `[[0] * m for _ in range(n)]` in place of `[[0] * m] * n`",
    "where elements of one list become elements of another, store copies: `out.append(list(row))`",
)


def field_name(place: FieldKey) -> str:
    """Return the name of a field of records, with its class."""
    cls = made_schema().classes[place[0]]
    return f"{cls.cls.__name__}.{cls.fields[place[1]]}"


def of_view(name: str, view: str) -> tuple[str, ...]:
    """Return the helps for a change of a dict of which a variable holds a view."""
    kept = f"where `{name}` is not to show the change, make a list: `{name} = list({view})`"
    return (kept, f"where `{name}` is to show it, ask for `{view}` again after the change")


def copy_help(changed: str, shown: str, dst: str, tie: Op | None) -> str:
    """Return the help for a change that one of two names is not to show."""
    source = shown if dst == changed else changed
    where = f"where `{shown}` is not to change"
    if isinstance(tie, Move):
        return f"{where}, make a copy: `{dst} = {source}.copy()`"
    if isinstance(tie, Prim) and TEMPORARY.search(tie.expr.text):
        return INDEX_LOOP
    if isinstance(tie, Prim) and tie.expr.effects.changes:
        return f"{where}, store a copy in `{dst}`: `{source}.copy()` in place of `{source}`"
    if isinstance(tie, Prim) and PART.fullmatch(text := tie.expr.text):
        for name in tie.expr.ins:
            text = text.replace(name, original_name(name))
        view = f"; of an array, `{text}` is a view" if text.endswith(":]") else ""
        part = f"[{tie.dsts.index(dst)}]" if len(tie.dsts) > 1 and dst in tie.dsts else ""  # of what is unpacked
        return f"{where}, make a copy: `{dst} = {text}{part}.copy()`{view}"
    return f"{where}, make `{dst}` of copies: `[list(row) for row in xs]` of a list of lists"
