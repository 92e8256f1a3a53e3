"""Calls of `jax.vmap` of a function of the program, and orders by one, written out as loops over the elements.

    jax.vmap(f, in_axes=(0, None))(xs, y)   ==>   stacked([f(x, y) for x in xs], xs)
    sorted(xs, key=f)                       ==>   [p[1] for p in sorted([(f(x), x) for x in xs], key=lambda p: p[0])]

JAX cannot batch a function that has a program counter of its own in every lane. A lane calls it for one element after
the other, and the results are put together. A function that JAX can trace stays with JAX.
"""

from __future__ import annotations

from typing import Any

import gast
import jax

from pcbatch.data.functions import array_items
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import MISSING, callee, resolve
from pcbatch.frontend.source.rewrites.nested import is_wanted
from pcbatch.frontend.source.scope import parameters
from pcbatch.frontend.source.tree import (
    Node,
    call,
    constant,
    display,
    load,
    rewrite_calls,
    subscript,
    supported,
    target_of,
)

ELEMENT = "_pcbatch_element"


def write_out(unit: Unit) -> Node:
    """Return the tree of a function with such calls written out; the tree itself where there are none."""
    return rewrite_calls(unit.node, lambda node: _written(unit, node) or _ordered(unit, node))


def _ordered(unit: Unit, node: Node) -> Node | None:
    """The call of `sorted`, `max` or `min` by keys that are computed before, where a function of the program does."""
    order = next((each for each in (sorted, max, min) if resolve(unit, node.func) is each), None)
    keys = [keyword for keyword in node.keywords if keyword.arg == "key"]
    if order is None or not keys or len(node.args) != 1 or any(k.arg in (None, "default") for k in node.keywords):
        return None
    key = keys[0].value
    if isinstance(key, gast.Lambda):
        name = key.args.args[0].id if len(parameters(key.args)) == 1 and key.args.args else ""
        value, needed = key.body, any(callee(unit, part) for part in gast.walk(key.body)) or is_wanted(unit, key)
    else:
        name, value = ELEMENT, call(key, [load(ELEMENT, node)], node)
        needed = callee(unit, value) is not None
    if not name or not needed:
        return None
    pair = display([value, load(name, node)], node)
    pairs = gast.copy_location(gast.ListComp(elt=pair, generators=[_over(name, node.args[0], node)]), node)
    first = gast.parse("lambda _pcbatch_pair: _pcbatch_pair[0]").body[0].value
    for part in gast.walk(first):
        gast.copy_location(part, node)
    by_first = gast.copy_location(gast.keyword("key", first), keys[0])
    keywords = [by_first if keyword is keys[0] else keyword for keyword in node.keywords]
    found = gast.copy_location(gast.Call(node.func, [pairs], keywords), node)
    if order is not sorted:
        return subscript(found, constant(1, node), node)
    second = subscript(load(f"{ELEMENT}_pair", node), constant(1, node), node)
    return gast.copy_location(gast.ListComp(second, [_over(f"{ELEMENT}_pair", found, node)]), node)


def _over(name: str, source: Node, at: Node) -> Node:
    return gast.comprehension(target=target_of(name, at), iter=source, ifs=[], is_async=0)


def _written(unit: Unit, node: Node) -> Node | None:
    """The loop that takes the place of a call of `jax.vmap(f)`, if `f` is a function of the program."""
    axes = _axes(unit, node)
    if axes is None:
        return None
    names = [f"{ELEMENT}{k}" for k, axis in enumerate(axes) if axis is not None]
    mapped = [_leading(arg, axis, node) for arg, axis in zip(node.args, axes, strict=True) if axis is not None]
    elements = iter(names)
    args = [arg if axis is None else load(next(elements), node) for arg, axis in zip(node.args, axes, strict=True)]
    element = call(node.func.args[0], args, node)
    targets = [target_of(name, node) for name in names]
    target = targets[0] if len(targets) == 1 else gast.copy_location(gast.Tuple(targets, gast.Store()), node)
    source = mapped[0] if len(mapped) == 1 else call(load("zip", node), mapped, node)
    generator = gast.comprehension(target=target, iter=source, ifs=[], is_async=0)
    listed = gast.copy_location(gast.ListComp(elt=element, generators=[generator]), node)
    return supported(array_items.stacked_results, [listed, mapped[0]], node)


def _leading(arg: Node, axis: int, at: Node) -> Node:
    """An argument with the mapped axis in front."""
    return arg if axis == 0 else supported(array_items.axis_first, [arg, constant(axis, at)], at)


def _axes(unit: Unit, node: Node) -> list[int | None] | None:
    """The mapped axis of each argument; None if a call is no such call, or one with other options."""
    inner = node.func
    if not isinstance(inner, gast.Call) or node.keywords or resolve(unit, inner.func) is not jax.vmap:
        return None
    if not inner.args or any(isinstance(arg, gast.Starred) for arg in (*node.args, *inner.args)) or not node.args:
        return None
    function = resolve(unit, inner.args[0])
    if function is MISSING or unit.batched(function) is None:
        return None
    options = dict(zip(("in_axes", "out_axes"), inner.args[1:], strict=False))
    options |= {keyword.arg: keyword.value for keyword in inner.keywords}
    if set(options) - {"in_axes", "out_axes"} or ("out_axes" in options and _literal(options["out_axes"]) != 0):
        return None
    axes = _literal(options["in_axes"]) if "in_axes" in options else 0
    listed = list(axes) if isinstance(axes, tuple | list) else [axes] * len(node.args)
    known = len(listed) == len(node.args) and all(axis is None or isinstance(axis, int) for axis in listed)
    return listed if known and any(axis is not None for axis in listed) else None


def _literal(node: Node) -> Any:
    try:
        return gast.literal_eval(node)
    except (ValueError, TypeError):
        return MISSING
