"""From an expression of the user's source to an `Expr`: its text, what it reads, and a compiled function.

The function is compiled from the user's own tree under the user's file name and positions, inside a shell that
gives it the user's closure cells and, in a cell of a reserved name, the support module:

    def __cells__(a, b, __pcbatch__):        # a, b: the free variables of the user's function
        def fib(n, t0):                      # the variables that the expression reads
            return n - t0

Only the code object of the inner function is kept; it is given the user's globals and cells. So tracebacks,
warnings and JAX's source locations all point to the user's line.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping
from types import CellType, CodeType, FunctionType, MappingProxyType
from typing import Any

import gast

from pcbatch.frontend.build.operators import SUPPORT, rewritten
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.same_code import FUTURE_FLAGS
from pcbatch.frontend.source.scope import free_names
from pcbatch.frontend.source.tree import Node, one_line, rebuild
from pcbatch.frontend.support import operators
from pcbatch.ir.dataflow import reachable
from pcbatch.ir.ops import Expr
from pcbatch.ir.written import Written


def make_expr(
    unit: Unit,
    node: Node,
    variables: frozenset[str],
    *,
    arity: int = 1,
    shown: Node | None = None,
    parts: Mapping[str, Node] = MappingProxyType({}),
) -> Expr:
    """The primitive that evaluates `node`.

    `variables` are the lane variables in scope, temporaries included. With `arity` other than one the value is
    unpacked into that many. `shown` is the expression whose source becomes the text, when `node` differs from
    it by calls of support functions. `parts` are the user's expressions that temporaries stand for.
    """
    helpers = used_helpers(unit, node)
    ins = lane_reads(unit, node, variables)
    shown = node if shown is None else shown
    text = one_line(shown)
    return Expr(text, ins, _compile(unit, node, helpers, ins, arity), _written(text, shown, ins, parts))


def _written(text: str, shown: Node, ins: tuple[str, ...], parts: Mapping[str, Node]) -> Written:
    temporaries = {name: parts[name] for name in ins if name in parts}
    if not temporaries:
        return Written(text)

    def whole(node: Node) -> Node:
        if isinstance(node, gast.Name) and node.id in temporaries:
            return whole(temporaries[node.id])
        return rebuild(node, whole)

    return Written(text, one_line(whole(shown)), tuple(one_line(whole(node)) for node in temporaries.values()))


def used_helpers(unit: Unit, node: Node) -> tuple[str, ...]:
    """Functions defined inside the user's function that `node` needs, also through one another."""
    direct = [name for name in free_names(node) if name in unit.helpers]
    if not direct:
        return ()
    edges = {name: [read for read in helper_reads(unit, name) if read in unit.helpers] for name in unit.helpers}
    used = reachable(direct, edges)
    return tuple(name for name in unit.helpers if name in used)


def helper_reads(unit: Unit, name: str) -> tuple[str, ...]:
    """Free names of a helper's definition."""
    node = unit.helpers[name]
    return free_names(node.value if isinstance(node, gast.Assign) else node)


def lane_reads(unit: Unit, node: Node, variables: frozenset[str]) -> tuple[str, ...]:
    """Lane variables that `node` reads, those captured by helpers last, each in order of first appearance."""
    names = list(free_names(node))
    for helper in used_helpers(unit, node):
        names += helper_reads(unit, helper)
    return tuple(dict.fromkeys(name for name in names if name in variables))


def default_expr(text: str, value: object) -> Expr:
    """Return a primitive without inputs whose value is an object that exists already."""
    return Expr(text, (), lambda: value)


def _compile(unit: Unit, node: Node, helpers: tuple[str, ...], ins: tuple[str, ...], arity: int) -> Callable[..., Any]:
    body = [gast.gast_to_ast(rewritten(unit, unit.helpers[name])) for name in helpers]
    body += _result(gast.gast_to_ast(rewritten(unit, node)), arity)
    freevars = unit.fn.__code__.co_freevars
    code = _inner_code(_shell((*freevars, SUPPORT), ins, body, node), unit.fn)
    cells = dict(zip(freevars, unit.fn.__closure__ or (), strict=True))
    cells[SUPPORT] = CellType(operators)
    closure = tuple(cells[name] for name in code.co_freevars)
    return FunctionType(code, unit.fn.__globals__, unit.fn.__name__, None, closure)


def _shell(cells_: tuple[str, ...], ins: tuple[str, ...], body: list[ast.stmt], at: Node) -> ast.Module:
    outer, inner = ", ".join(cells_), ", ".join(ins)
    tree = ast.parse(f"def __cells__({outer}):\n def __prim__({inner}):\n  pass")
    for part in ast.walk(tree):
        if isinstance(part, ast.stmt | ast.expr | ast.arg):
            part.lineno = part.end_lineno = at.lineno
            part.col_offset = part.end_col_offset = at.col_offset
    cells = tree.body[0]
    assert isinstance(cells, ast.FunctionDef)
    prim = cells.body[0]
    assert isinstance(prim, ast.FunctionDef)
    prim.body = body
    return ast.fix_missing_locations(tree)


def _inner_code(tree: ast.Module, fn: FunctionType) -> CodeType:
    flags = fn.__code__.co_flags & FUTURE_FLAGS
    with warnings.catch_warnings():  # Python has shown its warnings when the function was defined
        warnings.simplefilter("ignore")
        code: CodeType = compile(tree, fn.__code__.co_filename, "exec", flags, dont_inherit=True)
    for name in ("__cells__", "__prim__"):
        code = _nested(code, name)
    return code.replace(co_name=fn.__code__.co_name, co_qualname=fn.__code__.co_qualname)


def _nested(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def _result(value: ast.expr, arity: int) -> list[ast.stmt]:
    """Return one value, or unpack it with Python's own rules (and errors) and return the parts."""
    if arity == 1:
        return [ast.copy_location(ast.Return(value), value)]

    def parts(ctx: ast.expr_context) -> ast.expr:
        names: list[ast.expr] = [ast.copy_location(ast.Name(f"{SUPPORT}{i}", ctx), value) for i in range(arity)]
        return ast.copy_location(ast.Tuple(names, ctx), value)

    assign = ast.copy_location(ast.Assign([parts(ast.Store())], value), value)
    return [assign, ast.copy_location(ast.Return(parts(ast.Load())), value)]
