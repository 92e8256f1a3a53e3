"""Calls of the methods that an object may have, as choices by tests of which it has."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any

import gast

from pcbatch.data.functions import builtins, drafts, texts
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import MISSING, hiding, resolve
from pcbatch.frontend.source.rewrites.comparisons import (
    COMPARED,
    OPERATORS,
    REFLECTED,
    by_root,
    has_method,
    root_of_order,
)
from pcbatch.frontend.source.rewrites.method_lookup import (
    candidates,
    is_simple,
    methods_named,
    properties,
    takes_object,
)
from pcbatch.frontend.source.rewrites.spread import spread
from pcbatch.frontend.source.scope import hidden_inside
from pcbatch.frontend.source.streams import steps
from pcbatch.frontend.source.tree import (
    Node,
    attribute,
    call,
    compare,
    constant,
    display,
    load,
    rebuild,
    subscript,
    supported,
    target_of,
)

TRUTH = "__bool__ __len__"
BUILTINS = {len: "__len__", abs: "__abs__", next: "__next__", str: "__str__ __repr__", repr: "__repr__"}
TEXTS = (BUILTINS[str], BUILTINS[repr])
SHOWN = {-1: "str", 115: "str", 114: "repr"}
"""The builtins that make the texts of the parts of f-strings, by the code of their conversion."""
ASKED = (gast.Name, gast.Attribute, gast.Subscript, gast.Call)
"""Expressions whose truth may be that of an object of the user's."""


PLAIN_METHODS = frozenset("__len__ __str__ __repr__ __contains__ __bool__".split())
PLAIN_BUILTINS = (
    len,
    str,
    repr,
    int,
    float,
    bool,
    ord,
    chr,
    any,
    all,
    isinstance,
    range,
    list,
    tuple,
    dict,
    set,
    sorted,
)
"""Methods and builtins that give objects of Python's own."""


class Dispatch:
    """Makes such choices for one function, with names that are new in it."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.temps = 0

    def made(self, node: Node) -> Node | None:
        """Return what a call of a class becomes whose `__init__` is compiled along; None for other calls."""
        return None

    @contextmanager
    def inside(self, scope: Node) -> Iterator[None]:
        """Let names mean within the context what they mean inside of a comprehension or a lambda."""
        around, self.unit = self.unit, hiding(self.unit, hidden_inside(scope))
        yield
        self.unit = around

    def special(self, func: Node) -> str:
        """The special method of its only argument that a builtin calls; empty for other functions."""
        target = resolve(self.unit, func)
        return next((name for builtin, name in BUILTINS.items() if target is builtin), "")

    def text(self, value: Node, builtin: str = "str") -> Node | None:
        """The text of an object that is shown, by the method that makes it; None if none is compiled along."""
        if not isinstance(value, ASKED) or (isinstance(value, gast.Call) and not self.may_make(value.func)):
            return None
        made = call(load(builtin, value), [value], value)
        plain = builtin == "str" and is_simple(self.unit, value)  # what is no object is shown as it is
        return self.dispatched(value if plain else made, value, self.special(made.func), [])

    def filled(self, node: Node, operands: list[Node], slots: Sequence[bool]) -> Node | None:
        """A template whose operands are the texts of objects where a slot shows one by `str`."""
        made = {id(part): self.text(part) for part, slot in zip(operands, slots, strict=False) if slot}
        if not any(made.values()):
            return None

        def shown(child: Node) -> Node:
            return rebuild(child, shown) if isinstance(child, gast.Tuple) else made.get(id(child)) or child

        return rebuild(node, shown)

    def may_make(self, func: Node) -> bool:
        """Whether a call may give an object of the user's: that of a function, or of a method of an object."""
        method = isinstance(func, gast.Attribute) and not isinstance(func.value, gast.Constant | gast.JoinedStr)
        target = resolve(self.unit, func)
        return method if target is MISSING else isinstance(target, FunctionType) or target in self.unit.classes.values()

    def stored(
        self, node: Node, value: Node, name: str, args: list[Node], target: Node = None, before: Any = ()
    ) -> Node | None:
        """The statement that calls the method of an object, and assigns the result to a target; as `dispatched`. For an
        attribute that is assigned, it is that which sets the property."""
        setters = isinstance(node, gast.Assign) and isinstance(node.targets[0], gast.Attribute)
        functions = list(properties(self.unit, name, True) if setters else candidates(self.unit, *name.split()))
        if not functions or not is_simple(self.unit, value):
            return None
        out = node
        for k in reversed(range(len(functions))):
            holds, called = self.choice(functions, k, node, value, args)
            if setters:
                called = call(attribute(functions[k], "fset", node), [value, *args], node)
            last = gast.Expr(value=called) if target is None else gast.Assign(targets=[target], value=called)
            out = gast.If(test=holds, body=[*before, gast.copy_location(last, node)], orelse=[out])
            out = gast.copy_location(out, node)
        return out

    def dispatched(
        self, node: Node, value: Node, name: str, args: list[Node], keywords: Any = (), getters: Sequence[Node] = ()
    ) -> Node | None:
        """The call of the method that an object has, by tests of which it has; None if none is compiled along."""
        functions = list(getters or candidates(self.unit, *name.split()))
        args = spread(self.unit, call(value, args, node)).args
        functions = [one for one in functions if (getters and name) or self.takes(one, args, keywords, functions)]
        if not functions or self.is_plain(value):
            return None
        first: list[Node] = []
        if not isinstance(value, gast.Name) and not is_simple(self.unit, value):
            first, value = self.kept("receiver", value)
            node = with_receiver(node, value)
        out = node
        for k in reversed(range(len(functions))):
            holds, body = self.choice(functions, k, node, value, args, keywords)
            if name in ("__contains__", TRUTH):  # Python makes a bool of what the method returns
                body = supported(builtins.bool_, [body], node)
            if name == "__next__" and len(node.args) == 2:
                body = call(node.func, [supported(steps, [body], node), node.args[1]], node)
            out = gast.copy_location(gast.IfExp(test=holds, body=body, orelse=out), node)
        if name in TEXTS:
            absent = compare(value, gast.Is(), constant(None, node), node)
            out = gast.copy_location(gast.IfExp(test=absent, body=constant("None", node), orelse=out), node)
        if first:
            out = subscript(display([*first, out], node), constant(1, node), node)
        out.written_out, out.plain = True, not PLAIN_METHODS.isdisjoint(name.split())
        return out

    def takes(self, function: Node, args: list[Node], keywords: Any, others: Sequence[Node] = ()) -> bool:
        """Whether a method has parameters for the arguments of a call: others of its name may not. A partial of an
        unknown function hands them on to one of `others`, with those that it has bound."""
        if any(isinstance(arg, gast.Starred) for arg in args) or any(keyword.arg is None for keyword in keywords):
            return True
        own = [None] if takes_object(self.unit, function) else []
        called = resolve(self.unit, called_by_class(function))
        with suppress(ValueError):  # a builtin may have no signature
            try:
                inspect.signature(called).bind(*own, *args, **{one.arg: one for one in keywords})
            except TypeError:
                return False
        bound = _bound(self.unit, function)
        if bound is None:
            return True
        heads = [inspect.signature(resolve(self.unit, one)) for one in others if _bound(self.unit, one) is None]
        return any(_most(head) > len(args) + bound for head in heads)

    def reflected(self, node: Node) -> Node | None:
        """The comparison `a > b` by the method `__lt__` of `b`, or `a != b` by `__eq__`, of a class without its own."""
        left, right = node.left, node.comparators[0]
        op = type(node.ops[0])
        other = gast.Eq if op is gast.NotEq else REFLECTED.get(op)
        if other is None or not (self.is_fixed(left) and self.is_fixed(right)):
            return None
        name, own = f"__{COMPARED[other]}__", f"__{COMPARED[op]}__"
        functions = [one for one in candidates(self.unit, name) if not has_method(resolve(self.unit, one.value), own)]
        if not functions:
            return None
        operands = (left, right) if op is gast.NotEq else (right, left)
        # The other operand might have a method of its own, which Python asks first.
        alike = [self.choice(functions, k, node, operands[1], [])[0] for k in range(len(functions))]
        has_none = gast.copy_location(gast.BoolOp(op=gast.Or(), values=alike), node) if alike[1:] else alike[0]
        whole = node
        for k in reversed(range(len(functions))):
            holds, body = self.choice(functions, k, node, operands[0], [operands[1]])
            if op is gast.NotEq:
                body = gast.copy_location(gast.UnaryOp(op=gast.Not(), operand=body), node)
            else:
                holds = gast.copy_location(gast.BoolOp(op=gast.And(), values=[has_none, holds]), node)
            whole = gast.copy_location(gast.IfExp(test=holds, body=body, orelse=whole), node)
        whole.written_out = True
        return whole

    def equality(self, node: Node) -> Node | None:
        """The comparison `a == b` or `a != b` by the `__eq__` of `a`, or else that of `b`; None if none is compiled
        along."""
        functions = list(candidates(self.unit, "__eq__"))
        if not functions or any(methods_named(self.unit, "__ne__")):
            return None
        operands = [node.left, *node.comparators]
        if all(map(self.is_plain, operands)):
            return None
        before, operands = self.fixed(operands)
        whole = supported(drafts.equal_otherwise, operands, node)
        for asked, other in (operands[::-1], operands):
            for k in reversed(range(len(functions))):
                if not self.is_plain(asked):
                    holds, body = self.choice(functions, k, node, asked, [other])
                    whole = gast.copy_location(gast.IfExp(test=holds, body=body, orelse=whole), node)
        whole.written_out = True
        if isinstance(node.ops[0], gast.NotEq):
            whole = gast.copy_location(gast.UnaryOp(op=gast.Not(), operand=whole), node)
        return subscript(display([*before, whole], node), constant(-1, node), node) if before else whole

    def by_root(self, node: Node, name: str) -> Node | None:
        """A comparison of objects by that method of their class from which `functools.total_ordering` makes it."""
        classes = self.unit.classes.items()
        roots = [(key, root) for key, cls in classes if (root := root_of_order(cls, name)) is not None]
        before, operands = list[Node](), [node.left, *node.comparators]
        turned = None if any(map(self.is_plain, operands)) else REFLECTED.get(type(node.ops[0]))
        if roots or (turned is not None and any(candidates(self.unit, f"__{COMPARED[turned]}__"))):
            before, operands = self.fixed(operands)
        left, right = operands
        asked = compare(left, node.ops[0], right, node) if before else node
        whole = self.reflected(asked) or asked
        for key, root in roots:
            one, two = compare(left, OPERATORS[root], right, node), compare(left, gast.Eq(), right, node)
            first = self.dispatched(one, left, root, [right]) or one
            made = by_root(name, root, first, self.dispatched(two, left, "__eq__", [right]) or two)
            holds = supported(drafts.runs, [left, constant(name, node), load(key, node), display([], node)], node)
            whole = gast.copy_location(gast.IfExp(test=holds, body=made, orelse=whole), node)
        if before:
            whole = subscript(display([*before, whole], node), constant(-1, node), node)
        return None if whole is node else whole

    def fixed(self, operands: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        """Return what keeps operands in variables that cannot be written several times, and them as they can."""
        before, fixed = list[Node](), list(operands)
        for k, operand in enumerate(operands):
            if not self.is_fixed(operand):
                named, fixed[k] = self.kept("operand", operand)
                before += named
        return before, fixed

    def is_fixed(self, value: Node) -> bool:
        """Whether an expression may be written several times."""
        return isinstance(value, gast.Name | gast.Constant) or is_simple(self.unit, value)

    def is_plain(self, value: Node) -> bool:
        """Whether a value is none of an object of the user's, as far as its expression tells."""
        if isinstance(value, gast.Call) and any(resolve(self.unit, value.func) is one for one in PLAIN_BUILTINS):
            return True
        return isinstance(value, gast.Constant | gast.List | gast.Tuple | gast.Dict) or getattr(value, "plain", False)

    def choice(
        self, functions: list[Node], k: int, node: Node, value: Node, args: list[Node], keywords: Any = ()
    ) -> tuple[Node, Node]:
        """The test whether an object has the method that stands at `k` among the candidates, and its call."""
        function = functions[k]
        before = display([one.value for one in functions[:k] if one.attr == function.attr], node)
        holds = supported(drafts.runs, [value, constant(function.attr, node), function.value, before], node)
        made = self.defaults(function, value, args, keywords)
        own = [value] if takes_object(self.unit, function) else []
        body = gast.copy_location(gast.Call(called_by_class(function), [*own, *args], [*keywords, *made]), node)
        return holds, self.made(body) or body

    def defaults(self, function: Node, value: Node, args: list[Node], keywords: Any) -> list[Node]:
        """The defaults that a function which is a value has got where it was made, for the arguments left out."""
        fields = getattr(resolve(self.unit, function.value), "pcbatch_defaults", {})
        names = inspect.signature(resolve(self.unit, function)).parameters if fields else ()
        given = {*list(names)[: len(args) + 1], *(keyword.arg for keyword in keywords)}
        left = [name for name in fields if name not in given]
        return [gast.keyword(arg=name, value=attribute(value, fields[name], function)) for name in left]

    def kept(self, name: str, value: Node) -> tuple[list[Node], Node]:
        """The expression that assigns a value to a new variable, and one that reads it."""
        temp = self.temp(name, value)
        named = gast.NamedExpr(target=target_of(temp, value), value=value)
        named.target.made = True  # no name of the user's
        return [gast.copy_location(named, value)], load(temp, value)

    def temp(self, name: str, node: Node) -> str:
        self.temps += 1
        return f"{name}_{self.temps}_{getattr(node, 'lineno', 0)}_{getattr(node, 'col_offset', 0)}"


def called_by_class(function: Node) -> Node:
    """Return what is called for a candidate: a class where that is what `__class__` of its objects gives."""
    return function.value if function.attr == "__class__" else function


def _bound(unit: Unit, function: Node) -> int | None:
    """The number of arguments that a partial of an unknown function has bound; None for what is no such partial."""
    return getattr(resolve(unit, function.value), "pcbatch_bound", None)


def _most(head: inspect.Signature) -> float:
    """The greatest number of positional arguments that a function takes."""
    kinds = [one.kind for one in head.parameters.values()]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return math.inf if inspect.Parameter.VAR_POSITIONAL in kinds else sum(kind in positional for kind in kinds)


def format_slots(template: str) -> list[bool]:
    """Return for each operand of `str.format` whether its text by `str` is all that is shown of it."""
    found: dict[int, list[bool]] = {}
    try:
        fields = [field for field in texts.FORMATTER.parse(template) if field[1] is not None]
    except ValueError:  # which Python raises
        return []
    for k, (_, name, spec, conversion) in enumerate(fields):
        plain = not name or name.isdecimal()
        shown = plain and (conversion == "s" or not (spec or conversion))
        found.setdefault(int(name) if name and plain else k, []).append(shown)
    return [all(found.get(k, [False])) for k in range(max(found, default=-1) + 1)]


def percent_slots(template: str, count: int) -> list[bool]:
    """Return for each operand of `%` whether its text by `str` is all that is shown of it."""
    slots = [slot for slot in texts.PERCENT.finditer(template) if slot["kind"] != "%"]
    return [slot["kind"] == "s" for slot in slots] if len(slots) == count else []


def with_receiver(node: Node, value: Node) -> Node:
    """Return the node with a variable in place of the object that it asks."""
    match node:
        case gast.Call(func=gast.Attribute()):
            func = attribute(value, node.func.attr, node.func)
            return gast.copy_location(gast.Call(func=func, args=node.args, keywords=node.keywords), node)
        case gast.Call():
            return call(node.func, [value, *node.args[1:]], node)
        case gast.Attribute():
            return attribute(value, node.attr, node)
        case gast.UnaryOp():
            return gast.copy_location(gast.UnaryOp(op=node.op, operand=value), node)
        case gast.BinOp():
            return gast.copy_location(gast.BinOp(left=value, op=node.op, right=node.right), node)
        case gast.Compare(ops=[gast.In()]):
            return gast.copy_location(gast.Compare(left=node.left, ops=node.ops, comparators=[value]), node)
        case gast.Compare():
            return gast.copy_location(gast.Compare(left=value, ops=node.ops, comparators=node.comparators), node)
    return subscript(value, node.slice, node)
