"""Calls of generator functions whose generators are kept, as calls of the classes whose objects stand for these.

rand = lcg(seed)              ==>      rand = lcg_class(seed)
for x in lcg(seed): ...                is written out, as before
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from types import FunctionType

import gast

from pcbatch.data.sequences.lane_iterator import GENERATOR
from pcbatch.decisions import Decisions, key_of_library
from pcbatch.diagnostics.diagnostic import Diagnostic, Label
from pcbatch.errors import CompileError
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.generators import assigns_around, generator, is_generator
from pcbatch.frontend.source.helpers import key_of
from pcbatch.frontend.source.resolve import is_builtin, resolve
from pcbatch.frontend.source.rewrites.dispatch import Dispatch, with_receiver
from pcbatch.frontend.source.rewrites.kept.counted_elements import CannotResume
from pcbatch.frontend.source.rewrites.kept.generator_classes import class_of_generator
from pcbatch.frontend.source.rewrites.kept.written_iterators import written_iterator
from pcbatch.frontend.source.rewrites.method_lookup import generator_methods, is_simple
from pcbatch.frontend.source.rewrites.nested import function_of
from pcbatch.frontend.source.streams import lazy, takes_elements
from pcbatch.frontend.source.tree import (
    COMPREHENSIONS,
    SCOPES,
    Node,
    children,
    constant,
    display,
    load,
    rebuild,
    subscript,
)

HELPS = ("if it ends, keep an iterator over the list of its elements, `iter(list(...))`",)


def write_kept(unit: Unit) -> Node:
    """Return the tree of a function with such calls; the tree itself where there are none."""
    inside = any(is_generator(function_of(definition)) for definition in unit.definitions.values())
    return _rewritten(unit, unit.node) if unit.decisions.kept or inside else unit.node


def _rewritten(unit: Unit, node: Node) -> Node:
    new = rebuild(node, lambda child: _rewritten(unit, child))
    taken = {id(part) for part in taken_parts(unit, new) if not (asked_in_turns(unit, new) and _is_decided(unit, part))}
    return rebuild(
        new, lambda child: child if id(child) in taken and not _is_cycle(unit, child) else _kept(unit, child) or child
    )


def asked_in_turns(unit: Unit, node: Node) -> bool:
    """Whether a node is `zip`, or `map` of several iterables, which asks each of them in its turn."""
    name = lazy(unit, node)
    return name in ("zip", "map") and len(node.args) > (1 if name == "zip" else 2)


def _is_decided(unit: Unit, node: Node) -> bool:
    """Whether a node calls a generator function whose generators are to be kept."""
    target = generator(unit, node)
    return target is not None and _is_kept(unit, target.fn)


def keep_all(unit: Unit, node: Node) -> None:
    """Have the generators kept that a node calls and that some object can stand for; compiling starts again then."""
    parts = (part for part in gast.walk(node) if not assigns_around(unit, part))
    targets = [target for part in parts if (target := generator(unit, part)) is not None]
    unit.helpers.demand(Decisions(kept=frozenset(key_of(one.fn.__code__) for one in targets if _resumes(unit, one))))


def _resumes(unit: Unit, target: Target) -> bool:
    try:
        class_of_generator(target, unit.helpers)
    except CannotResume:
        return False
    return True


def kept_generator(unit: Unit, node: Node) -> Node | None:
    """The call of the class that stands for a generator, in place of a call of its function; None if it is not kept."""
    target = generator(unit, node)
    made = _class_of(unit, node, target) if target is not None and _is_kept(unit, target.fn) else None
    return None if made is None else _call(node, made, node.args, node.keywords)


def is_kept_object(unit: Unit, node: Node) -> bool:
    """Whether a node makes the object that stands for a generator."""
    return isinstance(node, gast.Call) and bool(getattr(resolve(unit, node.func), GENERATOR, False))


def _is_cycle(unit: Unit, node: Node) -> bool:
    """Whether a node is an iterator whose elements no other loop can take."""
    return isinstance(node, gast.Call) and resolve(unit, node.func) is itertools.cycle


def taken_parts(unit: Unit, node: Node) -> list[Node]:
    """The children of a node whose elements are taken here."""
    match node:
        case gast.For() | gast.comprehension():
            return [node.iter]
        case gast.YieldFrom() | gast.Starred():
            return [node.value]
        case gast.Compare():
            return list(node.comparators)
        case gast.Call(func=func, args=args) if not any(is_builtin(unit, func, name) for name in ("next", "iter")):
            return list(args) if takes_elements(unit, node, resolve(unit, func)) else []
    return []


def evaluated_once(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield the nodes that code evaluates at most once: none in the body of a loop or in a function inside."""
    for node in nodes:
        match node:
            case gast.While():
                continue
            case gast.For() | gast.comprehension():
                yield node
                yield from evaluated_once([node.iter, *getattr(node, "orelse", [])])
            case _ if isinstance(node, COMPREHENSIONS):
                yield node
                yield from evaluated_once(node.generators[:1])
            case _ if not isinstance(node, SCOPES):
                yield node
                yield from evaluated_once(children(node))


def _kept(unit: Unit, node: Node) -> Node | None:
    """The call of a class that takes the place of a call of a generator function."""
    target = _called(unit, node)
    if target is not None:
        made = _class_of(unit, node, target)
        captured = [gast.keyword(arg=inner, value=load(outer, node)) for inner, outer in target.captured]
        return None if made is None else _call(node, made, node.args, [*node.keywords, *captured])
    functions = [one for one in generator_methods(unit, node) if _is_kept(unit, resolve(unit, one))]
    if not functions:
        return None
    writer, value = Dispatch(unit), node.func.value
    first, value = ([], value) if is_simple(unit, value) else writer.kept("keeper", value)
    out = with_receiver(node, value)
    for k in reversed(range(len(functions))):
        made = _class_of(unit, node, Target(resolve(unit, functions[k])))
        if made is None:
            return None
        holds, _ = writer.choice(functions, k, node, value, node.args)
        called = _call(node, made, [value, *node.args], node.keywords)
        out = gast.copy_location(gast.IfExp(test=holds, body=called, orelse=out), node)
    return subscript(display([*first, out], node), constant(1, node), node) if first else out


def _called(unit: Unit, node: Node) -> Target | None:
    """The generator function that a call means, if its generators are kept, or are none of a primitive."""
    if not isinstance(node, gast.Call):
        return None
    if (function := written_iterator(resolve(unit, node.func))) is not None:
        kept = key_of_library(function.__name__) in unit.decisions.kept
        return Target(function) if kept else None
    target = generator(unit, node)
    if target is None:
        return None
    # One that assigns variables around it cannot be made as a value.
    return target if assigns_around(unit, node) or _is_kept(unit, target.fn) else None


def _is_kept(unit: Unit, fn: FunctionType) -> bool:
    return key_of(fn.__code__) in unit.decisions.kept


def _class_of(unit: Unit, node: Node, target: Target) -> Node | None:
    """An expression for the class of the generators of a function; None if compiling starts again with it."""
    try:
        made = class_of_generator(target, unit.helpers)
    except CannotResume as error:
        raise _refused(unit, node, target.fn, error) from None
    name = next((name for name, cls in unit.classes.items() if cls is made), None)
    if name is None:
        unit.helpers.streams[made] = None
        return None
    return load(name, node)


def _call(node: Node, func: Node, args: list[Node], keywords: list[Node]) -> Node:
    return gast.copy_location(gast.Call(func=func, args=args, keywords=keywords), node)


def _refused(unit: Unit, node: Node, fn: FunctionType, error: CannotResume) -> CompileError:
    place = Label(unit.source.loc(node), f"the generator of `{fn.__name__}` is kept")
    why = f"{error.why} (line {error.node.lineno})"
    return CompileError(Diagnostic("PCB304", "this generator cannot be kept", place, (), (why,), HELPS))
