"""Python's operators and builtins that traced values lack, replaced by calls of the support module.

    not x, max(x, 0), xs[k]      ==>      support.not_(x), support.max_(x, 0), support.get_item(xs, k)

A name means a builtin only if nothing hides it. What is replaced means the same for plain values, so that nested
functions, lambdas and comprehensions are rewritten too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import gast

from pcbatch.data import origins
from pcbatch.data.functions import builtins as of_lane
from pcbatch.data.functions import (
    exceptions,
    libraries,
    mappings,
    operators,
    python_numbers,
    sequence_builtins,
    texts,
    type_questions,
)
from pcbatch.data.functions.lifted import with_members
from pcbatch.data.functions.operators import replacement
from pcbatch.data.functions.python_numbers import METHODS
from pcbatch.data.functions.users_code import (
    in_exception,
    kept_in,
    kept_outside,
    load_attribute,
    load_method,
    see_through,
    substitute,
)
from pcbatch.frontend.build.iteration.taken_iterables import taken_at_once
from pcbatch.frontend.build.library_calls import (
    calls_argument,
    function_arguments,
    is_builtin_type,
    is_library,
    is_numpy_call,
    is_text,
    is_text_method,
    is_type_test,
    text_call,
    text_method,
)
from pcbatch.frontend.build.outside_changes import attribute_owner, changes_outside, known_object
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.impure import Impure, impure
from pcbatch.frontend.source.resolve import MISSING, asked_type, resolve
from pcbatch.frontend.source.rewrites.method_lookup import traced_super
from pcbatch.frontend.source.rewrites.nested import has_cache, is_cache
from pcbatch.frontend.source.rewrites.spread import with_known_stars
from pcbatch.frontend.source.scope import catches, hidden_inside, parameters
from pcbatch.frontend.source.streams import has_own
from pcbatch.frontend.source.tree import (
    LEAVES,
    Function,
    Node,
    constant,
    display,
    index_value,
    is_computed,
    is_constant,
    is_supported,
    load,
    rebuild,
    stars,
    support_function,
    supported,
)

BINARY: dict[type, Function] = {
    gast.Add: operators.add, gast.Sub: operators.sub, gast.Mult: operators.mul, gast.Div: operators.truediv,
    gast.FloorDiv: operators.floordiv, gast.Mod: operators.mod, gast.Pow: operators.power,
    gast.LShift: operators.lshift, gast.RShift: operators.rshift, gast.BitAnd: operators.and_,
    gast.BitOr: operators.or_, gast.BitXor: operators.xor,
}  # fmt: skip
UNARY: dict[type, Function] = {
    gast.Not: operators.not_, gast.USub: operators.neg, gast.UAdd: operators.pos, gast.Invert: operators.invert,
}  # fmt: skip
COMPARISONS: dict[type, Function] = {
    gast.In: operators.contains, gast.NotIn: operators.lacks, gast.Is: of_lane.is_, gast.IsNot: of_lane.is_not,
    gast.Eq: operators.eq, gast.NotEq: operators.ne, gast.Lt: operators.lt, gast.LtE: operators.le,
    gast.Gt: operators.gt, gast.GtE: operators.ge,
}  # fmt: skip
NUMBER_CLASSES = frozenset({"bool", "int", "float", "complex", "Number", "Complex", "Real", "Integral"})
PYTHONS = (gast.Not, gast.In, gast.NotIn)

PARTS = ("real", "imag")
UNCHANGED = (gast.ClassDef, gast.Constant, *LEAVES)  # to which no rule applies

Names = frozenset[str]
Rewrite = Callable[["_Written", Node], Node]


def operator_name(op: Node) -> str:
    """The name of the support function for a binary operator."""
    return BINARY[type(op)].__name__ if type(op) in BINARY else "matmul"


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
    if isinstance(node, UNCHANGED) or (isinstance(node, gast.Name) and node.annotation is None):
        return node
    new = _by_rules(unit, node, hidden, all_, decides)
    if isinstance(node, gast.FunctionDef) and catches(node.body, partial(_is_of_lanes, unit)):
        given = [load(name, node) for name in parameters(node.args)] if node is unit.node else [constant(..., node)]
        asked = gast.copy_location(gast.Expr(value=supported(exceptions.refuse_catching, given, node)), node)
        new = gast.copy_location(gast.FunctionDef(**dict(gast.iter_fields(new)) | {"body": [asked, *new.body]}), node)
    if decides and new is not node and isinstance(node, gast.Compare | gast.BinOp | gast.UnaryOp):
        return supported(operators.decided, [new], node)
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


@dataclass(frozen=True, slots=True)
class _Written:
    """A node as it is written. Questions about names are asked of it: rebuilding puts support functions in its parts.

    `target` is what a call calls, `inner` are the names hidden in it, and `all_` and `decides` those of `_rewritten`.
    """

    unit: Unit
    node: Node
    hidden: Names
    all_: bool
    decides: bool
    target: Any
    inner: Names

    def change(self, child: Node) -> Node:
        """Rewrite a part of the node."""
        func = getattr(self.node, "func", None)
        if child is func and isinstance(child, gast.Attribute) and child.attr != "__class__":
            # `substitute` takes the method itself, so its name is not a read of an attribute.
            outside = known_object(self.unit, child.value, self.hidden)
            new = rebuild(child, lambda value: _rewritten(self.unit, value, self.inner, self.all_))
            kept = supported(origins.note_outside, [new.value], new.value) if outside else new.value
            return rebuild(new, lambda part: kept if part is new.value else part)
        decides = any(child is test for test in _conditions(self.node, self.decides))
        return _rewritten(self.unit, child, self.inner, self.all_, decides)


def _by_rules(unit: Unit, node: Node, hidden: Names, all_: bool, decides: bool) -> Node:
    target = resolve(unit, node.func, hidden) if isinstance(node, gast.Call) else MISSING
    inner = hidden | hidden_inside(node)
    written = _Written(unit, node, hidden, all_, decides, target, inner)
    for whole in INSTEAD:
        if (made := whole(written)) is not None:
            return made
    new = taken_at_once(unit, with_known_stars(rebuild(node, written.change), target), target)
    for applies, rewrite in BESIDE:
        new = rewrite(written, new) if applies(written) else new
    return next(rewrite(written, new) for applies, rewrite in OF_PARTS if applies(written))


# In place of the rewriting of parts.


def _refused_effect(w: _Written) -> Node | None:
    """Refuse a call that Python would make anew for every example."""
    effect = impure(w.unit, w.node, w.target, w.hidden) if isinstance(w.node, gast.Call) and w.all_ else None
    if not isinstance(effect, Impure):
        return None
    words = (effect.name, effect.kind, effect.draw)
    return supported(of_lane.refuse_impure, [constant(word, w.node) for word in words], w.node)


def _seen_through(w: _Written) -> Node | None:
    """Rewrite a function with a decorator that caches, which sees no values of a lane."""
    if not isinstance(w.node, gast.FunctionDef) or not has_cache(w.unit, w.node):
        return None
    caches = [id(d) for d in w.node.decorator_list if is_cache(w.unit, d)]
    return rebuild(w.node, lambda d: supported(see_through, [d], d) if id(d) in caches else w.change(d))


def _template(w: _Written) -> Node | None:
    """Rewrite an f-string as a call that puts the text together, of values of the lane, too."""
    if not isinstance(w.node, gast.JoinedStr) or not (w.all_ or in_exception()):
        return None
    parts = []
    for value in w.node.values:
        if not isinstance(value, gast.FormattedValue):
            parts.append(w.change(value))
            continue
        shown = supported(texts.piece, [w.change(value.value)], value.value)
        spec = constant("", value) if value.format_spec is None else w.change(value.format_spec)
        parts.append(display([shown, constant(value.conversion, value), spec], value))
    return supported(texts.template, parts, w.node)


INSTEAD = (_refused_effect, _seen_through, _template, lambda w: traced_super(w.unit, w.node))


# Beside the node, which stays what it is.


def _kept_in(w: _Written, node: Node) -> Node:
    """Rewrite an assignment of an attribute of an object that may have existed before."""
    owner = attribute_owner(w.node)
    kept = supported(kept_in, [load(owner.id, owner), node.value], node.value)
    return rebuild(node, lambda child: kept if child is node.value else child)


def _matched(w: _Written, node: Node) -> Node:
    """Rewrite the subject of a `match`."""
    subject = supported(type_questions.matched, [node.subject, constant(_asks_numbers(node), node)], node.subject)
    return rebuild(node, lambda child: subject if child is node.subject else child)


def _asks_numbers(node: Node) -> bool:
    """Whether a `match` has a pattern such as `int()`, which asks for the type of a number."""
    patterns = (part.cls for part in gast.walk(node) if isinstance(part, gast.MatchClass))
    return any(getattr(cls, "id", getattr(cls, "attr", "")) in NUMBER_CLASSES for cls in patterns)


def _call_of(function: Node, args: list[Node], call: Node) -> Node:
    """A call of another function with these arguments, and the keywords of `call`."""
    return gast.copy_location(gast.Call(func=function, args=args, keywords=call.keywords), call)


def _kept_outside(w: _Written, node: Node) -> Node:
    """Rewrite what a helper puts into a container outside of it."""
    if isinstance(node, gast.Call):
        args = [arg if isinstance(arg, gast.Starred) else supported(kept_outside, [arg], arg) for arg in node.args]
        return gast.copy_location(gast.Call(func=node.func, args=args, keywords=node.keywords), node)
    return rebuild(node, lambda child: supported(kept_outside, [child], child) if child is node.value else child)


BESIDE: tuple[tuple[Callable[[_Written], bool], Rewrite], ...] = (
    (lambda w: attribute_owner(w.node) is not None, _kept_in),
    (lambda w: isinstance(w.node, gast.Match), _matched),
    (lambda w: changes_outside(w.unit, w.node, w.hidden), _kept_outside),
)


# Of the parts, another node: the first that applies.


def _type_test(w: _Written, node: Node) -> Node:
    test = constant(type(node.ops[0]).__name__, node)
    turned = gast.copy_location(gast.Compare(w.node.comparators[0], node.ops, [node.left]), node)
    if not isinstance(node.ops[0], gast.In | gast.NotIn) and is_type_test(w.unit, turned, w.hidden):
        return supported(type_questions.same_type, [test, node.left.args[0], node.comparators[0].args[0]], node)
    return supported(type_questions.type_test, [test, node.left.args[0], node.comparators[0]], node)


def _from_numpy(w: _Written, node: Node) -> Node:
    function = supported(libraries.from_numpy, [node.func], node.func)
    return supported(origins.array, [_call_of(function, node.args, node)], node)


def _of_library(w: _Written, node: Node) -> Node:
    """The call of a function of JAX or NumPy, which gives arrays; one of this package may give anything."""
    is_own = str(w.target.__module__).split(".")[0] == "pcbatch"
    return node if is_own else supported(origins.array, [node], node)


def _called(w: _Written, node: Node) -> Node:
    """The call of a function as it is copied, or of the support function that replaces it."""
    functions = function_arguments(w.unit, w.node, w.target, w.hidden)
    args = [supported(substitute, [arg], arg) if k in functions else arg for k, arg in enumerate(node.args)]
    if w.all_ and calls_argument(w.target):
        function = w.node.args[0]
        new = replacement(resolve(w.unit, function, w.hidden))  # of `int` in `map(int, xs)`
        if new is not None:
            args[0] = support_function(new, args[0])
        elif is_text_method(w.unit, function, w.hidden):
            args[0] = text_method(function)  # of `"".join` in `map("".join, rows)`
    return _call_of(_substituted(w, node.func), args, node)


def _substituted(w: _Written, func: Node) -> Node:
    """The function that a call means: the support function that replaces it, or its copy."""
    if (new := replacement(w.target, not w.all_)) is not None:
        return support_function(new, func)
    nested = isinstance(func, gast.Name) and func.id in w.unit.nested and func.id not in w.hidden
    if is_builtin_type(w.target) or nested:  # which is rewritten where it is defined
        return func
    if isinstance(func, gast.Attribute) and func.attr in METHODS:
        method = supported(python_numbers.method, [func.value, constant(func.attr, func)], func)
        return supported(substitute, [method], func)
    if isinstance(func, gast.Attribute) and w.target is MISSING and not func.attr.startswith("__"):
        return supported(substitute, [supported(load_method, [func.value, constant(func.attr, func)], func)], func)
    return supported(substitute, [func], func)


def _load_attribute(w: _Written, node: Node) -> Node:
    """Rewrite a read of an attribute, which may be a property; names that belong to a class stay as they are."""
    name = node.attr
    if isinstance(node.ctx, gast.Load) and asked_type(w.unit, w.node.value, w.hidden) is not None:
        return supported(type_questions.of_type, [node.value.args[0], constant(name, node)], node)
    is_known = resolve(w.unit, w.node, w.hidden) is not MISSING
    if is_known or not isinstance(node.ctx, gast.Load) or name in (*PARTS, "__class__") or name.startswith("__"):
        return _operator(w, node)
    return supported(load_attribute, [node.value, constant(name, node)], node)


def _operator(w: _Written, node: Node) -> Node:
    """Return an operator as a call of its support function; other nodes unchanged."""
    sign = getattr(node, "op", None) or next(iter(getattr(node, "ops", ())), None)
    if not w.all_ and isinstance(node, gast.UnaryOp | gast.Compare) and isinstance(sign, PYTHONS):
        return node
    match node:
        case gast.UnaryOp() if not is_constant(node.operand):
            return supported(UNARY[type(node.op)], [node.operand], node)
        case gast.BinOp(op=gast.Mod(), left=left) if is_text(w.unit, left, w.hidden):
            return supported(texts.percent, [left, node.right], node) if w.all_ else node
        case gast.BinOp() if type(node.op) in BINARY:
            return supported(BINARY[type(node.op)], [node.left, node.right], node)
        case gast.Compare() if len(node.ops) == 1:
            return supported(COMPARISONS[type(node.ops[0])], [node.left, _as_tuple(node.comparators[0], node)], node)
        case gast.Subscript(ctx=gast.Load()) if is_computed(node.slice) or has_own(w.unit, "__getitem__"):
            return supported(sequence_builtins.get_item, [node.value, index_value(node.slice)], node)
        case gast.Set() if not stars(node):
            return supported(mappings.set_display, node.elts, node)
        case gast.Dict() if not all(isinstance(key, gast.Constant) for key in node.keys):
            return supported(mappings.dict_display, _entries(node), node)
        case gast.DictComp() if any(issubclass(cls, Enum) for cls in w.unit.classes.values()):
            return supported(with_members, [node], node)
        case gast.Attribute(attr=name) if isinstance(node.ctx, gast.Load) and name in PARTS:
            return supported(python_numbers.attribute, [node.value, constant(name, node)], node)
        case gast.Attribute(attr="__class__") if isinstance(node.ctx, gast.Load):
            return supported(type_questions.class_, [node.value], node)
        case gast.List() | gast.Tuple() | gast.Set() if marks := stars(node):
            values = [e.value if isinstance(e, gast.Starred) else e for e in node.elts]
            made = supported(sequence_builtins.list_display, [constant(marks, node), *values], node)
            outer = {gast.Tuple: sequence_builtins.tuple_, gast.Set: mappings.set_}.get(type(node))
            return made if outer is None else supported(outer, [made], node)
        case gast.AugAssign():
            old = [load(node.target.id, node.value)] if isinstance(node.target, gast.Name) else []
            value = supported(operators.right_operand, [node.value, *old], node.value)
            return gast.copy_location(gast.AugAssign(target=node.target, op=node.op, value=value), node)
    return node


OF_PARTS: tuple[tuple[Callable[[_Written], bool], Rewrite], ...] = (
    # A method of a known text and a test of a type are a call and a comparison of their own.
    (lambda w: is_text_method(w.unit, getattr(w.node, "func", None), w.hidden), lambda _, node: text_call(node)),
    (lambda w: is_type_test(w.unit, w.node, w.hidden), _type_test),
    (lambda w: isinstance(w.node, gast.Attribute), _load_attribute),
    (lambda w: not isinstance(w.node, gast.Call), _operator),
    # Of the other calls, those that are replaced come first: some replace functions of NumPy, which give no arrays.
    (lambda w: replacement(w.target, not w.all_) is not None, _called),
    (lambda w: w.all_ and is_numpy_call(w.unit, w.node, w.hidden), _from_numpy),
    (lambda w: is_library(w.target), _of_library),
    (lambda w: True, _called),
)


def _entries(node: Node) -> list[Node]:
    """The keys and values of a dict display in turn; a dict that is spread has `Spread` for a key."""
    pairs = zip(node.keys, node.values, strict=True)
    keys = [support_function(mappings.Spread, value) if key is None else key for key, value in pairs]
    return [part for pair in zip(keys, node.values, strict=True) for part in pair]


def _as_tuple(node: Node, comparison: Node) -> Node:
    """A set after `in` as a tuple: values of a lane have no hash."""
    asked = is_supported(node, mappings.set_display) and isinstance(comparison.ops[0], gast.In | gast.NotIn)
    return display(node.args, node) if asked else node
