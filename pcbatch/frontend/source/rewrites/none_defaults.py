"""Parameters that are None where a new object is wanted: one form of the function makes it, the other has it given.

def fib(n, memo=None):                def fib(n, memo):  # memo is None      def fib(n, memo):  # any other
    if n < 2: return n                    if n < 2: return n                     if memo is None: return fib(n, None)
    if memo is None:            ==>       memo = {}                              if n < 2: return n
        memo = {}                         memo[n] = ...; return ...              memo[n] = ...; return ...
    memo[n] = ...; return ...

A function that changes the object in place gives it back to its caller. Here only the second form does, so that a
parameter is the caller's object on every path or on none. A call means the first form where its argument is the literal
None, or is left out and that is the default.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from weakref import WeakKeyDictionary

import gast

from pcbatch.data.catalogue import facts
from pcbatch.errors import CompileError
from pcbatch.frontend.source.callee import Statics, Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.locate import locate
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.scope import bindings, parameters
from pcbatch.frontend.source.tree import Node, call, constant, is_none, load, with_fields
from pcbatch.ir.names import ITSELF

UNLIKE = CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
HARMLESS = frozenset({"abs", "bool", "float", "int", "isinstance", "len", "range"})


def none_arguments(target: Target, names: Iterable[str]) -> Statics:
    """Return those of some parameters that tell the two forms of a function apart, each with None."""
    wanted = list(names)
    if not wanted or target.cached or target.fn.__code__.co_flags & UNLIKE:
        return {}
    found = _made(_node(target))
    return {name: None for name in wanted if name in found}


def write_none_defaults(unit: Unit, statics: Statics) -> Node:
    """Return the tree of the form of a function that is wanted; the tree itself if it has one form.

    `statics` has the parameters that are known, those that are None among them.
    """
    made = {id(part): name for name, part in _made(unit.node).items()}
    target = _itself(unit) if made else None
    if target is None or not none_arguments(target, made.values()):
        return unit.node
    known = {name for name in made.values() if name in statics}
    asked = [(part, made[id(part)]) for part in unit.node.body if id(part) in made and made[id(part)] not in known]
    guards = [_guard(unit, part, name, known) for part, name in asked]
    body = [_assignment(part) if made.get(id(part)) in known else part for part in unit.node.body]
    return with_fields(unit.node, body=[*guards, *(part for part in body if id(part) not in made)])


def _node(target: Target) -> Node:
    if target.nested is not None:
        return target.nested.node
    try:
        return locate(target.fn).node
    except CompileError:  # reported where the function is compiled
        return None


def _itself(unit: Unit) -> Target | None:
    """The target of calls of a function in its own body."""
    value = resolve(unit, load(ITSELF, unit.node))
    target = None if value is MISSING else unit.batched(value)
    return target if target is not None and target.fn.__code__ is unit.fn.__code__ else None


_found: WeakKeyDictionary[Node, dict[str, Node]] = WeakKeyDictionary()


def _made(node: Node) -> dict[str, Node]:
    """The parameters for which a function makes a new object at its start, each with the statement, if it may change
    that object."""
    if not isinstance(node, gast.FunctionDef):
        return {}
    if node not in _found:
        found: dict[str, Node] = {}
        names = parameters(node.args)
        places = [name for name, _ in bindings(node.body)]
        places += [name for part in gast.walk(node) if isinstance(part, gast.Nonlocal) for name in part.names]
        mentioned, quiet = set[str](), True
        for part in node.body:
            name = _parameter(part)
            asks_none = isinstance(part, gast.If) and isinstance(part.test, gast.Compare)
            if name in names and name not in mentioned and places.count(name) == 1 and _may_change(node, name):
                if asks_none or quiet:  # nothing before it can have filled or emptied the object
                    found[name] = part
            mentioned |= {each.id for each in gast.walk(part) if isinstance(each, gast.Name)}
            quiet = quiet and _is_quiet(part)
        _found[node] = found
    return _found[node]


def _parameter(node: Node) -> str | None:
    """The variable to which a statement assigns an object if it is None, or if it is false."""
    match node:
        case gast.If(test=test, body=[gast.Assign(targets=[gast.Name(id=name)])], orelse=[]) if _lacks(test, name):
            return str(name)
        case gast.Assign(targets=[gast.Name(id=name)], value=gast.IfExp() as value):
            either = (value.test, value.orelse), (gast.UnaryOp(op=gast.Not(), operand=value.test), value.body)
            return str(name) if any(_lacks(test, name) and _is(kept, name) for test, kept in either) else None
        case gast.Assign(targets=[gast.Name(id=name)], value=gast.BoolOp(op=gast.Or(), values=[first, _])):
            return str(name) if _is(first, name) else None
    return None


def _lacks(test: Node, name: str) -> bool:
    """Whether a test holds for a variable that is None."""
    match test:
        case gast.Compare(left=left, ops=[gast.Is() | gast.Eq()], comparators=[right]):
            return _is(left, name) and is_none(right)
        case gast.UnaryOp(op=gast.Not(), operand=gast.Compare(left=left, ops=[gast.IsNot()], comparators=[right])):
            return _is(left, name) and is_none(right)
        case gast.UnaryOp(op=gast.Not(), operand=operand):
            return _is(operand, name)
    return False


def _is(node: Node, name: str) -> bool:
    return isinstance(node, gast.Name) and bool(node.id == name)


def _is_quiet(node: Node) -> bool:
    """Whether a statement changes no object."""
    for part in gast.walk(node):
        match part:
            case gast.AugAssign() | gast.Await() | gast.Yield() | gast.YieldFrom():
                return False
            case gast.Subscript(ctx=gast.Store() | gast.Del()) | gast.Attribute():
                return False
            case gast.Call(func=func) if not (isinstance(func, gast.Name) and func.id in HARMLESS):
                return False
    return True


def _may_change(node: Node, name: str) -> bool:
    """Whether a function changes the object of a parameter in place, or gives it to a function that may."""
    for part in gast.walk(node):
        match part:
            case gast.Subscript(ctx=gast.Store() | gast.Del()) | gast.Attribute(ctx=gast.Store() | gast.Del()):
                if _root(part) == name:
                    return True
            case gast.Call(func=gast.Attribute(attr=attr) as func) if facts(attr).changes and _root(func) == name:
                return True
            case gast.Call(func=func) if not (isinstance(func, gast.Name) and hasattr(builtins, func.id)):
                given = [*part.args, *(keyword.value for keyword in part.keywords)]
                if any(_is(arg, name) for arg in given):
                    return True
    return False


def _root(node: Node) -> str | None:
    while isinstance(node, gast.Subscript | gast.Attribute):
        node = node.value
    return str(node.id) if isinstance(node, gast.Name) else None


def _assignment(node: Node) -> Node:
    """The assignment of the new object alone."""
    if isinstance(node, gast.If):
        return node.body[0]
    value, name = node.value, node.targets[0].id
    if isinstance(value, gast.BoolOp):
        return with_fields(node, value=value.values[1])
    return with_fields(node, value=value.body if _is(value.orelse, name) else value.orelse)


def _guard(unit: Unit, node: Node, name: str, known: Collection[str]) -> Node:
    """The call of the other form, at the start of the function, where the parameter turns out to be None."""
    args = unit.node.args
    values = {each: load(each, node) for each in parameters(args)} | dict.fromkeys((name, *known), constant(None, node))
    given = [values[arg.id] for arg in (*args.posonlyargs, *args.args)]
    named = [gast.keyword(arg=arg.id, value=values[arg.id]) for arg in args.kwonlyargs]
    whole = with_fields(call(load(ITSELF, node), given, node), keywords=named)
    result = gast.copy_location(gast.Return(value=whole), node)
    return gast.copy_location(gast.If(test=_test(node, name), body=[result], orelse=[]), node)


def _test(node: Node, name: str) -> Node:
    match node:
        case gast.If(test=test) | gast.Assign(value=gast.IfExp(test=test)) if _lacks(test, name):
            return test
        case gast.Assign(value=gast.IfExp(test=test)):
            return gast.copy_location(gast.UnaryOp(op=gast.Not(), operand=test), test)
    first = node.value.values[0]
    return gast.copy_location(gast.UnaryOp(op=gast.Not(), operand=first), first)
