"""Python's operators and builtins that traced values lack, replaced by calls of the support module.

    not x, max(x, 0), f"{x}"      ==>      support.not_(x), support.max_(x, 0), f"{support.shown(x)}"

A name means a builtin only if nothing hides it. What is replaced means the same for plain values, so that nested
functions, lambdas and comprehensions are rewritten too.
"""

from __future__ import annotations

import builtins
import collections
import functools
import operator
import queue
from collections.abc import Callable
from functools import partial
from typing import Any

import gast
import numpy as np

from pcbatch.data.functions.python_numbers import METHODS
from pcbatch.frontend.build.iteration.reversed_iterators import taken_at_once
from pcbatch.frontend.build.library_calls import (
    calls_argument,
    function_arguments,
    is_builtin_type,
    is_library,
    is_numpy_call,
)
from pcbatch.frontend.build.outside_changes import attribute_owner, changes_outside, known_object
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.impure import Impure, impure
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.rewrites.nested import is_cache
from pcbatch.frontend.source.scope import bindings, catches, parameters
from pcbatch.frontend.source.streams import has_own
from pcbatch.frontend.source.tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    Node,
    constant,
    index_value,
    integer,
    is_constant,
    load,
    rebuild,
    support_function,
    supported,
)

NAMES = (
    "max min int float bool complex any all sorted pow range str bin oct hex ord chr repr ascii format abs round "
    "divmod sum len list tuple bytes bytearray reversed set frozenset dict isinstance type hasattr getattr callable "
    "dir id hash"
)
BINARY = {
    gast.Add: "add", gast.Sub: "sub", gast.Mult: "mul", gast.Div: "truediv", gast.FloorDiv: "floordiv", gast.Mod: "mod",
    gast.Pow: "power", gast.LShift: "lshift", gast.RShift: "rshift", gast.BitAnd: "and_", gast.BitOr: "or_",
    gast.BitXor: "xor",
}  # fmt: skip
UNARY = {gast.Not: "not_", gast.USub: "neg", gast.UAdd: "pos", gast.Invert: "invert"}
COMPARISONS = {
    gast.In: "contains", gast.NotIn: "lacks", gast.Is: "is_", gast.IsNot: "is_not",
    gast.Eq: "eq", gast.NotEq: "ne", gast.Lt: "lt", gast.LtE: "le", gast.Gt: "gt", gast.GtE: "ge",
}  # fmt: skip
OPERATORS = (*BINARY.values(), *UNARY.values(), "eq", "ne", "lt", "le", "gt", "ge", "contains", "is_", "is_not")
REPLACED = [
    *((getattr(builtins, name), f"{name}_") for name in NAMES.split()),
    (collections.Counter, "counter"),
    (collections.defaultdict, "defaultdict"),
    (collections.OrderedDict, "ordered_dict"),
    (collections.deque, "deque_"),
    (queue.Queue, "queue_"),
    (queue.SimpleQueue, "queue_"),
    (queue.LifoQueue, "stack_"),
    (queue.PriorityQueue, "priority_queue_"),
    (np.isscalar, "isscalar_"),
    (functools.reduce, "reduce_"),
    (print, "print_"),
    (np.iterable, "iterable_"),
    *((getattr(operator, "pow" if name == "power" else name), name) for name in OPERATORS if name != "contains"),
    (operator.abs, "abs_"),
    (operator.inv, "invert"),
    (operator.iadd, "iadd"),  # the other operators in place have the same values without help
    (operator.ipow, "ipow"),
]
"""Functions, and the names of the support functions that replace them."""

LANES_ONLY = frozenset(
    "max_ min_ int_ float_ bool_ complex_ any_ all_ sorted_ range_ str_ repr_ ascii_ format_ not_".split()
)
"""Replaced in lane code only: in a helper, Python's own refuse traced values by themselves, or make text."""

NUMBER_CLASSES = frozenset({"bool", "int", "float", "complex", "Number", "Complex", "Real", "Integral"})
PYTHONS = (gast.Not, gast.In, gast.NotIn)

TYPE_TESTS = (gast.Is, gast.IsNot, gast.Eq, gast.NotEq, gast.In, gast.NotIn)
PARTS = ("real", "imag")


Names = frozenset[str]


def operator_name(op: Node) -> str:
    """The name of the support function for a binary operator."""
    return BINARY.get(type(op), "matmul")


def rewritten(unit: Unit, node: Node, hidden: Names = frozenset()) -> Node:
    """Replace the operators and builtins of lane code by support functions; `hidden` are names of inner scopes."""
    return _rewritten(unit, node, hidden, True)


def in_helper(unit: Unit, node: Node) -> Node:
    """Rewrite a function without a decorator: only operations that traced values have with another meaning."""
    return _rewritten(unit, node, Names(), False)


def _rewritten(unit: Unit, node: Node, hidden: Names, all_: bool, decides: bool = False) -> Node:
    """Rewrite one node: everything if `all_`, as in lane code, else as in a helper.

    `decides`: Python takes the value as a condition, so a call of `decided` gives errors of it this location.
    """
    if isinstance(node, gast.ClassDef):
        return node
    new = _changed(unit, node, hidden, all_, decides)
    if isinstance(node, gast.FunctionDef) and catches(node.body, partial(_is_of_lanes, unit)):
        given = [load(name, node) for name in parameters(node.args)] if node is unit.node else [constant(..., node)]
        asked = gast.copy_location(gast.Expr(value=supported("refuse_catching", given, node)), node)
        new = gast.copy_location(gast.FunctionDef(**dict(gast.iter_fields(new)) | {"body": [asked, *new.body]}), node)
    if decides and new is not node and isinstance(node, gast.Compare | gast.BinOp | gast.UnaryOp):
        return supported("decided", [new], node)
    return new


def _is_of_lanes(unit: Unit, handler: Node) -> bool:
    """Whether a handler may catch what a lane raises: JAX's own errors are none of it."""
    return not getattr(handler.type and resolve(unit, handler.type), "__module__", "").startswith("jax.")


def _conditions(node: Node, decides: bool) -> list[Node]:
    """The parts of a node whose truth Python decides."""
    match node:
        case gast.If() | gast.IfExp() | gast.While() | gast.Assert():
            return [node.test]
        case gast.comprehension():
            return list(node.ifs)
        case gast.BoolOp() if decides:
            return list(node.values)
    return []


def _changed(unit: Unit, node: Node, hidden: Names, all_: bool, decides: bool) -> Node:
    inner = hidden | _bound(node)
    target = resolve(unit, node.func, hidden) if isinstance(node, gast.Call) else MISSING
    effect = impure(unit, node, target, hidden) if isinstance(node, gast.Call) and all_ else None
    if isinstance(effect, Impure):
        texts = (effect.name, effect.kind, effect.draw)
        return supported("refuse_impure", [constant(text, node) for text in texts], node)
    # Questions about the user's names come first: rebuilding puts calls of the support module in their places.
    numpy = all_ and is_numpy_call(unit, node, hidden)
    asks_type = _is_type_test(unit, node, hidden)
    functions = function_arguments(unit, node, target, hidden)
    tests = _conditions(node, decides)

    def change(child: Node) -> Node:
        if isinstance(node, gast.Call) and child is node.func and isinstance(child, gast.Attribute):
            # `substitute` takes the method itself, so its name is not a read of an attribute.
            outside = known_object(unit, child.value, hidden)
            new = rebuild(child, lambda value: _rewritten(unit, value, inner, all_))
            kept = supported("outside", [new.value], new.value) if outside else new.value
            return rebuild(new, lambda part: kept if part is new.value else part)
        return _rewritten(unit, child, inner, all_, any(child is test for test in tests))

    if isinstance(node, gast.FunctionDef) and any(is_cache(unit, d) for d in node.decorator_list):
        caches = [id(d) for d in node.decorator_list if is_cache(unit, d)]
        return rebuild(
            node, lambda child: supported("see_through", [child], child) if id(child) in caches else change(child)
        )
    if isinstance(node, gast.JoinedStr) and all_:
        return _template(node, change)
    node, before = rebuild(node, change), node
    node = taken_at_once(unit, node, target)
    if (owner := attribute_owner(before)) is not None:
        kept = supported("kept_in", [load(owner.id, owner), node.value], node.value)
        node = rebuild(node, lambda child: kept if child is node.value else child)
    if isinstance(node, gast.Match):
        subject = supported("matched", [node.subject, constant(_asks_numbers(node), node)], node.subject)
        node = rebuild(node, lambda child: subject if child is node.subject else child)
    if changes_outside(unit, before, hidden):
        node = _kept_outside(node)
    if isinstance(node, gast.Call) and _on_text(unit, before.func, hidden):
        method = supported("text_method", [node.func.value, constant(node.func.attr, node)], node.func)
        return _call_of(method, node.args, node)
    if isinstance(node, gast.Attribute) and resolve(unit, before, hidden) is MISSING:
        node = _load_attribute(node)
    if asks_type:
        test = constant(type(node.ops[0]).__name__, node)
        return supported("type_test", [test, node.left.args[0], node.comparators[0]], node)
    if not isinstance(node, gast.Call):
        return _operator(unit, node, all_)
    replacement = _replacement(target, all_)
    if replacement is None and numpy:
        node = _call_of(supported("from_numpy", [node.func], node.func), node.args, node)
        return supported("array", [node], node)
    if replacement is None and is_library(target) and str(target.__module__).split(".")[0] != "pcbatch":
        return supported("array", [node], node)
    if replacement is not None or not is_library(target):
        args = [supported("substitute", [arg], arg) if k in functions else arg for k, arg in enumerate(node.args)]
        if all_ and calls_argument(target):
            args[0] = _stand_in(unit, before.args[0], args[0], hidden)
        node = _call_of(_substituted(unit, node.func, target, replacement, hidden), args, node)
    return _text(node) if all_ else node


def _asks_numbers(node: Node) -> bool:
    """Whether a `match` has a pattern such as `int()`, which asks for the type of a number."""
    patterns = (part.cls for part in gast.walk(node) if isinstance(part, gast.MatchClass))
    return any(getattr(cls, "id", getattr(cls, "attr", "")) in NUMBER_CLASSES for cls in patterns)


def _call_of(function: Node, args: list[Node], call: Node) -> Node:
    """A call of another function with these arguments, and the keywords of `call`."""
    return gast.copy_location(gast.Call(func=function, args=args, keywords=call.keywords), call)


def _substituted(unit: Unit, func: Node, target: object, replacement: str | None, hidden: Names) -> Node:
    """The function that a call means, by the support function `replacement` if there is one, else as it is copied."""
    if replacement is not None:
        return support_function(replacement, func)
    if is_builtin_type(target) or _is_nested(unit, func, hidden):
        return func  # a nested function is rewritten where it is defined
    if isinstance(func, gast.Attribute) and func.attr in METHODS:
        method = supported("method", [func.value, constant(func.attr, func)], func)
        return supported("substitute", [method], func)
    return supported("substitute", [func], func)


def _kept_outside(node: Node) -> Node:
    """Rewrite what a helper puts into a container outside of it."""
    if isinstance(node, gast.Call):
        args = [arg if isinstance(arg, gast.Starred) else supported("kept_outside", [arg], arg) for arg in node.args]
        return gast.copy_location(gast.Call(func=node.func, args=args, keywords=node.keywords), node)
    return rebuild(node, lambda child: supported("kept_outside", [child], child) if child is node.value else child)


def _on_text(unit: Unit, func: Node, hidden: Names) -> bool:
    """Whether a callee is a method of a text that is known while compiling."""
    if not isinstance(func, gast.Attribute):
        return False
    return _is_text(func.value) or isinstance(resolve(unit, func.value, hidden), str)


def _stand_in(unit: Unit, written: Node, arg: Node, hidden: Names) -> Node:
    """A builtin that is an argument, `int` in `map(int, xs)`, as the support function that takes its place."""
    name = _replacement(resolve(unit, written, hidden), True)
    return arg if name is None else support_function(name, arg)


def _load_attribute(node: Node) -> Node:
    """Rewrite a read of an attribute, which may be a property; names that belong to a class stay as they are."""
    name = node.attr
    kept = not isinstance(node.ctx, gast.Load) or name in (*PARTS, "__class__") or name.startswith("__")
    return node if kept else supported("load_attribute", [node.value, constant(name, node)], node)


def _is_nested(unit: Unit, node: Node, hidden: Names) -> bool:
    """Whether a node names a function nested in the user's function, which is rewritten with it."""
    return isinstance(node, gast.Name) and node.id in unit.nested and node.id not in hidden


def _operator(unit: Unit, node: Node, all_: bool) -> Node:
    """Return an operator as a call of its support function, text made of values too; other nodes unchanged."""
    sign = getattr(node, "op", None) or next(iter(getattr(node, "ops", ())), None)
    if not all_ and isinstance(node, gast.UnaryOp | gast.Compare) and isinstance(sign, PYTHONS):
        return node
    match node:
        case gast.UnaryOp() if not is_constant(node.operand):
            return supported(UNARY[type(node.op)], [node.operand], node)
        case gast.BinOp() if type(node.op) in BINARY and not (isinstance(node.op, gast.Mod) and _is_text(node.left)):
            return supported(BINARY[type(node.op)], [node.left, node.right], node)
        case gast.Compare() if len(node.ops) == 1:
            return supported(COMPARISONS[type(node.ops[0])], [node.left, _as_tuple(node.comparators[0], node)], node)
        case gast.Subscript(ctx=gast.Load()) if _is_computed(node.slice) or has_own(unit, "__getitem__"):
            return supported("get_item", [node.value, index_value(node.slice)], node)
        case gast.Set():
            return supported("set_display", node.elts, node)
        case gast.Dict() if not all(isinstance(key, gast.Constant) for key in node.keys):
            return supported("dict_display", _entries(node), node)
        case gast.Attribute(attr=name) if isinstance(node.ctx, gast.Load) and name in PARTS:
            return supported("attribute", [node.value, constant(name, node)], node)
        case gast.Attribute(attr="__class__") if isinstance(node.ctx, gast.Load):
            return supported("class_", [node.value], node)
        case gast.List() if isinstance(node.ctx, gast.Load) and any(isinstance(e, gast.Starred) for e in node.elts):
            stars = "".join("*" if isinstance(e, gast.Starred) else "." for e in node.elts)
            values = [e.value if isinstance(e, gast.Starred) else e for e in node.elts]
            return supported("list_display", [constant(stars, node), *values], node)
        case gast.AugAssign():
            old = [load(node.target.id, node.value)] if isinstance(node.target, gast.Name) else []
            value = supported("right_operand", [node.value, *old], node.value)
            return gast.copy_location(gast.AugAssign(target=node.target, op=node.op, value=value), node)
    return _text(node) if all_ else node


def _is_computed(index: Node) -> bool:
    """Whether an index may be a value of the lane that a list takes, too: no literal, and none of several axes."""
    if isinstance(index, gast.Slice):
        return any(bound is not None and _is_computed(bound) for bound in (index.lower, index.upper, index.step))
    if isinstance(index, gast.Tuple):  # the key of a dict, or the index of an array
        axes = (gast.Slice, gast.Starred)
        return not any(isinstance(part, axes) or is_constant(part) for part in index.elts)
    return not is_constant(index) and integer(index) is None


def _entries(node: Node) -> list[Node]:
    """The keys and values of a dict display in turn; a dict that is spread has `SPREAD` for a key."""
    keys = [
        support_function("SPREAD", value) if key is None else key
        for key, value in zip(node.keys, node.values, strict=True)
    ]
    return [part for pair in zip(keys, node.values, strict=True) for part in pair]


def _as_tuple(node: Node, comparison: Node) -> Node:
    """A set after `in` as a tuple: values of a lane have no hash."""
    display = isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute) and node.func.attr == "set_display"
    if not display or not isinstance(comparison.ops[0], gast.In | gast.NotIn):
        return node
    return gast.copy_location(gast.Tuple(elts=node.args, ctx=gast.Load()), node)


def _is_type_test(unit: Unit, node: Node, hidden: Names) -> bool:
    """Whether a node is a comparison such as `type(x) is ...`."""
    if not isinstance(node, gast.Compare) or len(node.ops) != 1 or type(node.ops[0]) not in TYPE_TESTS:
        return False
    left = node.left
    asks = isinstance(left, gast.Call) and len(left.args) == 1 and not left.keywords
    return asks and not isinstance(left.args[0], gast.Starred) and resolve(unit, left.func, hidden) is type


def _bound(node: Node) -> Names:
    """The names that a scope hides from what is inside it."""
    if isinstance(node, (*FUNCTIONS, gast.Lambda)):
        body = [node.body] if isinstance(node, gast.Lambda) else node.body
        return frozenset((*parameters(node.args), *(name for name, _ in bindings(body))))
    if isinstance(node, COMPREHENSIONS):
        return frozenset(name for generator in node.generators for name, _ in bindings([generator.target]))
    return Names()


def _replacement(target: Any, all_: bool) -> str | None:
    """The support function for a call of `target`."""
    if target is MISSING or not callable(target):
        return None
    name = next((name for function, name in REPLACED if target is function), None)
    return name if all_ or name not in LANES_ONLY else None


def _template(node: Node, change: Callable[[Node], Node]) -> Node:
    """Rewrite an f-string as a call that puts the text together, of values of the lane, too."""
    parts = []
    for value in node.values:
        if not isinstance(value, gast.FormattedValue):
            parts.append(change(value))
            continue
        shown = supported("piece", [change(value.value)], value.value)
        spec = constant("", value) if value.format_spec is None else change(value.format_spec)
        parts.append(_tuple([shown, constant(value.conversion, value), spec], value))
    return supported("template", parts, node)


def _tuple(elements: list[Node], at: Node) -> Node:
    return gast.copy_location(gast.Tuple(elts=elements, ctx=gast.Load()), at)


def _text(node: Node) -> Node:
    """Rewrite f-strings and `%`, so that a traced value in a text is refused."""
    if isinstance(node, gast.FormattedValue):
        value = supported("shown", [node.value], node.value)
        new = gast.FormattedValue(value=value, conversion=node.conversion, format_spec=node.format_spec)
        return gast.copy_location(new, node)
    if isinstance(node, gast.BinOp) and isinstance(node.op, gast.Mod) and _is_text(node.left):
        return supported("percent", [node.left, node.right], node)
    return node


def _is_text(node: Node) -> bool:
    return is_constant(node) and isinstance(node.value, str)
