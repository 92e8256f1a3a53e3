"""Functions on gast trees: making nodes, walking in the order of evaluation, predicates of nodes.

Trees are shared between compilations of one file, so no code of the package changes a node that the parser made:
rewriting makes new nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any

import gast

from pcbatch.data.functions.sequence_builtins import slice_

Node = Any  # a gast node: gast makes its classes at import time, so type checkers do not know them
Function = Callable[..., Any]

SUPPORT = "__pcbatch__"  # the name under which primitives find the support module; users may not use it
ATTEMPTED = "__pcbatch_attempted__"  # the parameter of a function that is an expression in the body of a `try`
SUPPORT_MODULE = ModuleType(SUPPORT)
"""The support functions that trees call, by name: a cell of primitives, so that no name of the user's can hide it.

It grows while primitives are traced, and being a module it counts as no state of the user's.
"""

COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)
FUNCTIONS = (gast.FunctionDef, gast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, gast.ClassDef, gast.Lambda, *COMPREHENSIONS)


def load(name: str, at: Node) -> Node:
    """Make an expression that reads `name`, with the location of `at`."""
    return gast.copy_location(gast.Name(id=name, ctx=gast.Load(), annotation=None, type_comment=None), at)


def target_of(name: str, at: Node) -> Node:
    """Make a target that assigns `name`, with the location of `at`."""
    return gast.copy_location(gast.Name(id=name, ctx=gast.Store(), annotation=None, type_comment=None), at)


def no_parameters() -> Node:
    """Return the parameters of a function that has none."""
    return gast.arguments(args=[], posonlyargs=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[])


def constant(value: object, at: Node) -> Node:
    """Make a literal, with the location of `at`."""
    return gast.copy_location(gast.Constant(value=value, kind=None), at)


def binary(left: Node, op: Node, right: Node, at: Node) -> Node:
    """Make the operation `left op right`, with the location of `at`."""
    return gast.copy_location(gast.BinOp(left=left, op=op, right=right), at)


def compare(left: Node, op: Node, right: Node, at: Node) -> Node:
    """Make the comparison `left op right`, with the location of `at`."""
    return gast.copy_location(gast.Compare(left=left, ops=[op], comparators=[right]), at)


def call(func: Node, args: list[Node], at: Node) -> Node:
    """Make the call `func(*args)`, with the location of `at`."""
    return gast.copy_location(gast.Call(func=func, args=args, keywords=[]), at)


def support_name(function: Function) -> str:
    """Return the name by which primitives find a support function in `SUPPORT_MODULE`, where it is entered."""
    name: str = function.__name__
    assert vars(SUPPORT_MODULE).setdefault(name, function) is function, f"two support functions are named {name}"
    return name


def support_function(function: Function, at: Node) -> Node:
    """Make a read of a support function, with the location of `at`."""
    module = load(SUPPORT, at)
    module.made = True  # no name of the user's
    return attribute(module, support_name(function), at)


def attribute(value: Node, name: str, at: Node) -> Node:
    """Make the read `value.name`, with the location of `at`."""
    return gast.copy_location(gast.Attribute(value=value, attr=name, ctx=gast.Load()), at)


def supported(function: Function, args: list[Node], at: Node) -> Node:
    """Make a call of a support function, with the location of `at`.

    It means the same as the Python construct that it stands for where its arguments are plain values.
    """
    return call(support_function(function, at), args, at)


def is_supported(node: Node, function: Function) -> bool:
    """Whether a node is a call of a support function that `supported` has made."""
    match node:
        case gast.Call(func=gast.Attribute(value=gast.Name(id=id_), attr=attr)):
            return bool(id_ == SUPPORT and attr == function.__name__)
    return False


def attempted(body: Node, at: Node) -> Node:
    """Make the function without arguments that evaluates an expression in the body of a `try`: none of the user's."""
    return with_defaults({ATTEMPTED: constant(None, at)}, body, at)


def with_defaults(values: Mapping[str, Node], body: Node, at: Node) -> Node:
    """Make the function that evaluates an expression, and whose parameters have these defaults."""
    names = [gast.Name(id=name, ctx=gast.Param(), annotation=None, type_comment=None) for name in values]
    args = [gast.copy_location(name, at) for name in names]
    arguments = with_fields(no_parameters(), args=args, defaults=list(values.values()))
    return gast.copy_location(gast.Lambda(args=arguments, body=body), at)


def is_attempted(code: CodeType) -> bool:
    """Whether code is that of a function that `attempted` has made."""
    return code.co_varnames[:1] == (ATTEMPTED,)


def read_of(target: Node) -> Node:
    """Make the expression that reads what a target assigns."""
    return with_fields(target, ctx=gast.Load())


def subscript(value: Node, index: Node, at: Node) -> Node:
    """Make the subscription `value[index]`, with the location of `at`."""
    return gast.copy_location(gast.Subscript(value=value, slice=index, ctx=gast.Load()), at)


def display(elements: list[Node], at: Node) -> Node:
    """Make a tuple display, with the location of `at`."""
    return gast.copy_location(gast.Tuple(elts=elements, ctx=gast.Load()), at)


def index_value(index: Node) -> Node:
    """Return an index as an expression, with calls in place of slices."""
    match index:
        case gast.Slice():
            parts = (index.lower, index.upper, index.step)
            return supported(slice_, [constant(None, index) if part is None else part for part in parts], index)
        case gast.Tuple():
            return rebuild(index, index_value)
    return index


LEAVES = (gast.expr_context, gast.operator, gast.unaryop, gast.boolop, gast.cmpop)
"""Nodes without parts of their own, which say only what the node around them is."""


def rebuild(node: Node, change: Callable[[Node], Node]) -> Node:
    """Apply `change` to every child of a node but `LEAVES`, in field order; return the same object if no child
    changes."""
    changed: dict[str, Any] = {}
    for name in node._fields:
        old = getattr(node, name, None)
        if isinstance(old, list):
            new = [change(item) if isinstance(item, gast.AST) else item for item in old]
            differs = any(a is not b for a, b in zip(new, old, strict=True))
        elif isinstance(old, gast.AST) and not isinstance(old, LEAVES):
            new = change(old)
            differs = new is not old
        else:
            continue
        if differs:
            changed[name] = new
    return with_fields(node, **changed) if changed else node


def rebuild_bodies(node: Node, statements: Callable[[list[Node]], list[Node]], *, inner: bool = True) -> Node:
    """Apply `statements` to every list of statements in a node, inner ones first; return the same object if none
    changes.

    With `inner` false the bodies of functions and classes inside the node stay as they are.
    """

    def change(child: Node) -> Node:
        return child if not inner and isinstance(child, SCOPES) else rebuild_bodies(child, statements, inner=inner)

    node = rebuild(node, change)
    fields: dict[str, Any] = {}
    for name, old in gast.iter_fields(node):
        if isinstance(old, list) and old and isinstance(old[0], gast.stmt):
            new = statements(old)
            if len(new) != len(old) or any(a is not b for a, b in zip(new, old, strict=True)):
                fields[name] = new
    if not fields:
        return node
    return with_fields(node, **fields)


def with_fields(node: Node, **fields: Any) -> Node:
    """Make a copy of a node with some fields replaced."""
    return gast.copy_location(type(node)(**(dict(gast.iter_fields(node)) | fields)), node)


def rewrite_calls(node: Node, written: Callable[[Node], Node | None]) -> Node:
    """Replace the calls in a tree, inner ones first; return the same object if none changes.

    `written` gives the expression that takes the place of a call, None for a call that stays.
    """
    new = rebuild(node, lambda child: rewrite_calls(child, written))
    if not isinstance(new, gast.Call):
        return new
    replacement = written(new)
    return new if replacement is None else replacement


def children(node: Node) -> Iterator[Node]:
    """The direct children of a node, in the order in which Python evaluates them."""
    if isinstance(node, gast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield from (item for item in (key, value) if item is not None)
        return
    for name in node._fields:  # as `gast.iter_child_nodes` does, which is slower
        part = getattr(node, name, None)
        if isinstance(part, gast.AST):
            yield part
        elif isinstance(part, list):
            yield from (item for item in part if isinstance(item, gast.AST))


def one_line(node: Node) -> str:
    """The source text of an expression on one line."""
    text: str = gast.unparse(node).strip()
    return text.replace("\r", "\\r").replace("\n", "\\n")


def is_constant(node: Node) -> bool:
    """Whether a node is a literal such as `True` or `1`."""
    return isinstance(node, gast.Constant)


def is_none(node: Node) -> bool:
    """Whether a node is the literal `None`."""
    return is_constant(node) and node.value is None


def integer(node: Node) -> int | None:
    """The value of an integer literal, with or without a sign; None for anything else."""
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.USub):
        value = integer(node.operand)
        return None if value is None else -value
    known = isinstance(node, gast.Constant) and type(node.value) is int
    return node.value if known else None


def is_computed(index: Node) -> bool:
    """Whether an index may be a value of the lane that a list takes, too: no literal, and none of several axes."""
    if isinstance(index, gast.Slice):
        return any(bound is not None and is_computed(bound) for bound in (index.lower, index.upper, index.step))
    if isinstance(index, gast.Tuple):  # the key of a dict, or the index of an array
        axes = (gast.Slice, gast.Starred)
        return not any(isinstance(part, axes) or is_constant(part) for part in index.elts)
    return not is_constant(index) and integer(index) is None


def stars(node: Node) -> str:
    """A `*` for each element with a star of a display, `[x, *xs]`, and a dot for the others; empty if there is none."""
    marks = "".join("*" if isinstance(element, gast.Starred) else "." for element in node.elts)
    evaluated = isinstance(node, gast.Set) or isinstance(node.ctx, gast.Load)
    return marks if evaluated and "*" in marks else ""
