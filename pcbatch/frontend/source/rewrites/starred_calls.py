"""Calls with `*values` of a list of the lane, of functions that take several numbers of arguments.

    f(*xs)            ==>   f(xs[0]) if len(xs) == 1 else f(xs[0], xs[1])      with `def f(a, b=0)`
    f(*xs)            ==>   f(*tuple(xs)), a call that gives `rest` as it is   with `def f(*rest)`
    max(*xs, 0)       ==>   max([*xs, 0]), if there are two of them

Type inference finds these calls (`Decisions.expanded`). Those of functions that take one number of arguments have no
need of this (`spread.py`).
"""

from __future__ import annotations

import builtins
import math
from inspect import CO_VARARGS
from types import FunctionType
from typing import Any

import gast

from pcbatch.data.functions.math_functions.several_numbers import norm_of
from pcbatch.data.functions.sequence_builtins import len_
from pcbatch.data.functions.sequence_operators import star_item, star_rest, star_several
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import resolve
from pcbatch.frontend.source.scope import hidden_inside
from pcbatch.frontend.source.tree import (
    FUNCTIONS,
    Node,
    compare,
    constant,
    display,
    load,
    rebuild,
    subscript,
    supported,
    target_of,
    with_fields,
)

MOST = 8  # numbers of arguments that a function may take
SIMPLE = (gast.Name, gast.Constant)


def write_starred(unit: Unit) -> Node:
    """Return the tree of a function with such calls written out; the tree itself where there are none."""
    return _written(unit, unit.node, frozenset(), False) if unit.decisions.expanded else unit.node


def _written(unit: Unit, node: Node, hidden: frozenset[str], inner: bool) -> Node:
    """Rewrite a node; `inner` says that no variable of the function can be assigned there."""
    inside = hidden if node is unit.node else hidden | hidden_inside(node)
    inner = inner or (isinstance(node, (*FUNCTIONS, gast.Lambda)) and node is not unit.node)

    def change(child: Node) -> Node:
        return _written(unit, child, inside, inner or (isinstance(node, gast.comprehension) and child is node.iter))

    new = rebuild(node, change)
    if not isinstance(node, gast.Call) or any(keyword.arg is None for keyword in node.keywords):
        return new
    stars = [arg.value for arg in node.args if isinstance(arg, gast.Starred)]
    spans = [unit.source.loc(one) for one in (node, *stars)]
    if not stars or unit.decisions.expanded.isdisjoint(spans):
        return new
    target = resolve(unit, node.func, hidden)
    for each in (builtins.max, builtins.min):
        if target is each and all(keyword.arg == "key" for keyword in node.keywords):
            several = supported(star_several, [_listed(new.args), constant(each.__name__, node)], node)
            return with_fields(new, args=[several])
    if target is math.hypot and len(new.args) == 1 and not node.keywords:
        return supported(norm_of, [new.args[0].value], node)
    return _of_function(unit, new, target, inner) if isinstance(new.args[-1], gast.Starred) and stars[1:] == [] else new


def _listed(args: list[Node]) -> Node:
    """The list of arguments, of which one at least is `*values`; these values where they are the only ones."""
    alone = len(args) == 1
    return args[0].value if alone else gast.copy_location(gast.List(elts=args, ctx=gast.Load()), args[0])


def _of_function(unit: Unit, node: Node, target: Any, inner: bool) -> Node:
    """A call of a function of the user's, whose last argument is `*values`."""
    found = target if isinstance(target, Target) else unit.batched(target)
    fn = target if found is None else found.fn
    if not isinstance(fn, FunctionType):
        return node
    code, bound = fn.__code__, 0 if found is None else len(found.args)
    named = {*(keyword.arg for keyword in node.keywords), *(name for name, _ in (found.keywords if found else ()))}
    names = code.co_varnames[bound : code.co_argcount]
    *before, star = node.args
    free = names[len(before) :]
    if code.co_flags & CO_VARARGS:
        if free or bound > code.co_argcount:
            return node
        if found is None:
            unit.want(code, node, "it gets as many arguments as a list of the lane has elements")
        values = _listed([*before[len(names) :], star])
        rest = gast.Starred(value=supported(star_rest, [values], node), ctx=gast.Load())
        return with_fields(node, args=[*before[: len(names)], gast.copy_location(rest, star)])
    optional = names[len(names) - len(fn.__defaults__ or ()) :]
    least, most = len([name for name in free if name not in optional]), len(free)
    if inner or named.intersection(free) or not least < most <= MOST or not _are_simple(before):
        return node
    return _choice(node, least, most)


def _are_simple(args: list[Node]) -> bool:
    """Whether it is the same to evaluate these before or after others."""
    return all(isinstance(arg, SIMPLE) for arg in args)


def _choice(node: Node, least: int, most: int) -> Node:
    """The choice among calls with `least` to `most` arguments in place of `*values`."""
    *before, star = node.args
    temp = target_of(f"starred_{node.lineno}_{node.col_offset}", star)
    kept = gast.NamedExpr(target=temp, value=supported(star_rest, [star.value], star))
    values = load(temp.id, star)

    def made(count: int) -> Node:
        items = [
            supported(star_item, [values, constant(k, star), constant(count, star)], star.value) for k in range(count)
        ]
        return with_fields(node, args=[*before, *items])

    out = made(most)
    for count in reversed(range(least, most)):
        test = compare(supported(len_, [values], star), gast.Eq(), constant(count, star), node)
        out = gast.copy_location(gast.IfExp(test=test, body=made(count), orelse=out), node)
    return subscript(display([gast.copy_location(kept, node), out], node), constant(1, node), node)
