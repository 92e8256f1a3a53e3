"""The order in which Python evaluates the parts of an expression: from left to right.

Primitives are pure, so an expression may be evaluated later than Python would, as long as nothing between it and its
use can change what it reads. Two things can. A later part may assign a variable: then the variable is copied before. Or
it may change an object in place, whichever name that has there: then every part before it that is more than a variable
is computed before, `t = o.v`. A variable alone is not copied then: the object that it names is the changed one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import FunctionType

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.primitives import lane_reads, passed_function
from pcbatch.frontend.source.bind_call import bind
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.changed_in_loops import changes
from pcbatch.frontend.source.changing_methods import changes_arguments
from pcbatch.frontend.source.function_unit import Faults
from pcbatch.frontend.source.generators import generator
from pcbatch.frontend.source.places import mutation, place_of
from pcbatch.frontend.source.resolve import callee
from pcbatch.frontend.source.rewrites.nested import rebound, static_value
from pcbatch.frontend.source.rewrites.spread import spread
from pcbatch.frontend.source.tree import COMPREHENSIONS, SCOPES, Node, children, rebuild
from pcbatch.ir.ops import Move

SAFE = (
    gast.Name, gast.Constant, gast.UnaryOp, gast.BoolOp, gast.Compare, gast.IfExp, gast.NamedExpr, gast.Tuple,
    gast.List, gast.JoinedStr, gast.Starred, gast.Slice, gast.expr_context, gast.operator, gast.unaryop, gast.boolop,
    gast.cmpop,
)  # fmt: skip
"""Nodes that raise nothing by themselves, whatever the values."""

PASSED_ON = (gast.Starred, gast.Slice, gast.FormattedValue, gast.Tuple, gast.List, gast.Set, gast.Dict)
"""Nodes that put values together: what they hold is computed before, and they stay where they are."""

TOTAL = (gast.Add, gast.Sub, gast.Mult, gast.BitAnd, gast.BitOr, gast.BitXor)
"""Operators that raise nothing, but for types that do not fit."""


def assigned(b: Builder, node: Node) -> frozenset[str]:
    """The variables that the evaluation of an expression changes, by `:=` or in place."""
    if isinstance(node, (*COMPREHENSIONS, gast.comprehension)):
        return frozenset[str]().union(*(assigned(b, child) for child in children(node)))
    if isinstance(node, SCOPES):
        return frozenset()
    own = frozenset({node.target.id}) if isinstance(node, gast.NamedExpr) else frozenset[str]()
    found = mutation(b.unit, node)
    if found is not None:
        own |= {found.place.name}
    elif (target := callee(b.unit, node)) is not None:
        if b.symbol.may_change(target):
            arguments = (*node.args, *(keyword.value for keyword in node.keywords))
            own |= {place.name for arg in arguments if (place := place_of(b.unit, arg)) is not None}
            own |= {outer for _, outer in target.captured}
        own |= {outer for _, outer in returned_by(b, node, target)}
    return own.union(*(assigned(b, child) for child in children(node)))


def updated(b: Builder, node: Node, in_place: bool = True) -> frozenset[str]:
    """The variables that get a value in the evaluation of an expression, by `:=` or of a nested function.

    With `in_place` also those whose objects a nested function changes, which it returns.
    """
    if isinstance(node, SCOPES) and not isinstance(node, COMPREHENSIONS):
        return frozenset()
    own = frozenset({node.target.id}) if isinstance(node, gast.NamedExpr) else frozenset[str]()
    target = None if isinstance(node, SCOPES) else callee(b.unit, node) or generator(b.unit, node)
    if target is not None:
        own |= {outer for _, outer in returned_by(b, node, target, in_place)}
    return own.union(*(updated(b, child, in_place) for child in children(node)))


def changes_objects(b: Builder, node: Node) -> bool:
    """Whether the evaluation of an expression may change an object in place, by whatever name."""
    if isinstance(node, SCOPES) and not isinstance(node, COMPREHENSIONS):
        return False
    if mutation(b.unit, node) is not None:
        return True
    target = None if isinstance(node, SCOPES) else callee(b.unit, node)
    if target is not None and (
        b.symbol.may_touch(target)
        or any(b.symbol.may_touch(given) for _, given in _function_arguments(b, node, target))
    ):
        return True
    return _generator_changes(b, node) or any(changes_objects(b, child) for child in children(node))


def _generator_changes(b: Builder, node: Node) -> bool:
    """Whether a node calls a generator function that may change an object which others know."""
    if isinstance(node, SCOPES) or generator(b.unit, node) is None:
        return False
    changed = (found for found, _ in changes(b.unit, list(gast.walk(node.func))))
    return any(not isinstance(one, FunctionType) or changes_arguments(b.unit, one) for one in changed)


def may_raise(b: Builder, node: Node) -> bool:
    """Whether the evaluation of an expression may raise an exception, as far as its form tells.

    A division by zero raises in the body of a `try` alone.
    """
    if isinstance(node, SCOPES) and not isinstance(node, COMPREHENSIONS):
        return False
    safe = isinstance(node, SAFE)
    if isinstance(node, gast.Name):
        safe = node.id not in b.unbound
    elif isinstance(node, gast.BinOp):
        divides = isinstance(node.op, gast.Div | gast.FloorDiv | gast.Mod)
        safe = isinstance(node.op, TOTAL) or (divides and not b.handlers)
    return not safe or any(may_raise(b, child) for child in children(node))


def raises_in_order(b: Builder, node: Node) -> bool:
    """Whether several parts of an expression may raise, one of them because a variable has no value yet.

    A lane without a value for a variable fails before the operation that reads it, so that these parts need operations
    of their own.
    """
    if not b.unbound or b.unbound.isdisjoint(lane_reads(b.unit, node, b.variables)):
        return False
    return sum(may_raise(b, child) for child in children(node)) > 1


def returned_by(b: Builder, node: Node, target: Target, in_place: bool = True) -> tuple[tuple[str, str], ...]:
    """The variables that a call returns, each with its name in the function that is called; see `updated`."""

    def names(of: Target) -> Collection[str]:
        return of.returned if in_place else rebound(of)

    pairs = [(inner, outer) for inner, outer in target.captured if inner in names(target)]
    for name, value in _function_arguments(b, node, target):
        pairs += [(f"{name}.{inner}", outer) for inner, outer in value.captured if inner in names(value)]
    return tuple(pairs)


def _function_arguments(b: Builder, node: Node, target: Target) -> list[tuple[str, Target]]:
    """The nested functions among the arguments of a call, each with its parameter."""
    inside = b.unit.definitions or b.unit.returned or any(isinstance(part, gast.Lambda) for part in gast.walk(node))
    given = bind(Faults(b.unit.source), spread(b.unit, node), target).given if inside else ()
    values = [(name, static_value(b.unit, arg)) for name, arg in given]
    return [(name, value) for name, value in values if isinstance(value, Target)]


def frozen(b: Builder, node: Node, names: frozenset[str], objects: bool, callee: bool = False) -> Node:
    """Return an expression that what comes next does not change any more, but for functions, which read when called.

    Args:
        b: the builder.
        node: the expression, without control flow.
        names: the variables that are assigned next.
        objects: whether objects may be changed in place next.
        callee: whether the expression is what a call calls, such as a method, which no variable can hold.
    """
    reads = lane_reads(b.unit, node, b.variables)
    if not reads or (not objects and names.isdisjoint(reads)):
        return node
    match node:
        case gast.Name(id=name):
            return copied(b, node) if name in names else node
        case gast.Lambda(args=args):
            defaults = (default for default in (*args.defaults, *args.kw_defaults) if default)
            copies = {id(default): frozen(b, default, names, objects) for default in defaults}
            args = rebuild(args, lambda child: copies.get(id(child), child))
            return gast.copy_location(gast.Lambda(args=args, body=node.body), node)
        case gast.Attribute() if callee or node.attr == "at":
            pass
        case gast.Subscript(value=gast.Attribute(attr="at")):
            pass
        case gast.expr() if not isinstance(node, PASSED_ON):
            return copied(b, node)
    return rebuild(node, lambda child: frozen(b, child, names, objects))


def settled(b: Builder, node: Node, callee: bool = False) -> Node:
    """An expression that raises nothing any more where it matters what is raised first: in the body of a `try`, and
    beside variables that may have no value."""
    if not (b.handlers or b.unbound) or (isinstance(node, gast.Name) and node.id not in b.unbound):
        return node
    if not may_raise(b, node):
        return node
    return frozen(b, node, frozenset(lane_reads(b.unit, node, b.variables)), True, callee)


def store(b: Builder, dst: str, node: Node) -> None:
    """Build `dst = node` for an expression without control flow."""
    if isinstance(node, gast.Name) and node.id in b.variables and passed_function(b.unit, node.id) is None:
        b.require_bound(node)
        b.emit(Move(dst, node.id, b.loc(node)))
    else:
        b.prim((dst,), node)


def copied(b: Builder, node: Node) -> Node:
    """Copy the value of an expression without control flow to a new temporary, and return a read of that."""
    temp = b.temp()
    store(b, temp, node)
    return b.held(temp, node)


def check_apart(b: Builder, node: Node, captured: Mapping[str, str], returned: Mapping[str, str]) -> None:
    """Refuse a call in which a function assigns a variable around it while another function of the call reads it."""
    passed = list(captured.values())
    for outer in dict.fromkeys(returned.values()):
        if passed.count(outer) > 1:
            title = f"two functions of this call use the variable `{outer}`, and one of them assigns it"
            help = "pass it as an argument and return it"
            b.faults.add("PCB107", title, node, "each would have a value of its own", helps=(help,))
