"""Helps and diagnostics for changes in place that another variable would show: what to copy, which name to use."""

from __future__ import annotations

import re

from pcbatch.data.objects.made import made_schema
from pcbatch.data.objects.made_fields import FieldKey
from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.ir.cfg import Call, Op
from pcbatch.ir.ops import Move, Prim
from pcbatch.lowering.cfg_passes.split_live_ranges import original_name

CODE = "PCB330"
NOTE = "Python changes the object, so every name of it shows the change; a lane's variables are values"
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


def in_itself(op: Prim, root: str) -> Diagnostic:
    """Return the diagnostic for an object that is stored inside of itself."""
    title = f"`{original_name(root)}` is stored inside of itself, by itself or in what holds it"
    note = "a lane's variables are values, of which none has itself inside; records that lanes make may"
    helps = ("keep the number of an object in a list in its place: `parent = len(nodes)`",)
    return Diagnostic(CODE, title, label(op.loc, "stored here"), (), (note,), helps)


def given_twice(op: Call, root: str, other: str) -> Diagnostic:
    """Return the diagnostic for a call that changes an argument, of which another argument may be a part."""
    name, second = original_name(root), original_name(other)
    both = f"`{name}` is given to `{op.func}` twice"
    if second != name or TEMPORARY.fullmatch(name):
        both = f"two arguments of `{op.func}` may be one object, or one a part of the other"
    title = f"{both}, and `{op.func}` changes it"
    helps = ("give the object once, and use one parameter for it in the function",)
    return Diagnostic(CODE, title, label(op.loc, "changed here"), (), (NOTE,), helps)


def of_some_types(op: Prim) -> Diagnostic:
    """Return the diagnostic for `x += v` that changes an object of the caller's in one copy of a function only."""
    title = "this changes an object of the caller's in one call of the function, and makes a new one in another"
    helps = ("write two functions: `xs.extend(ys)` for lists, `x = x + y` for texts, tuples and numbers",)
    return Diagnostic(CODE, title, label(op.loc), (), (NOTE,), helps)


def label(loc: Loc | None, text: str = "") -> Label | None:
    """Return the label of a place; None if it is not known."""
    return None if loc is None else Label(loc, text)
