"""From an expression of the user's source to an `Expr`: its text, what it reads, and a compiled function.

The function is compiled from the user's own tree under the user's file name and positions, inside a shell that
gives it the user's closure cells and, in a cell of a reserved name, the support module:

    def __cells__(a, b, __pcbatch__):        # a, b: the free variables of the user's function
        def fib(n, t0):                      # the variables that the expression reads
            return n - t0

Only the code object of the inner function is kept; it is given the user's globals and cells. So tracebacks,
warnings and JAX's source locations all point to the user's line.

Default arguments of nested functions and lambdas, which a primitive makes anew: a change of them is refused there.

def visit(x, seen=[]): ...     ==>      @support.own_defaults
                                        def visit(x, seen=[]): ...
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import FunctionType, MappingProxyType
from typing import Any, TypeVar

import gast

from pcbatch.data.functions.sequence_builtins import unpacked
from pcbatch.data.functions.users_code import own_defaults
from pcbatch.frontend.build.kept_primitives import kept, made_once
from pcbatch.frontend.build.operators import rewritten
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.captured import require_known
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.same_code import compile_inner
from pcbatch.frontend.source.scope import free_names, renamed
from pcbatch.frontend.source.streams import streams_in
from pcbatch.frontend.source.tree import SUPPORT, SUPPORT_MODULE, Node, load, one_line, rebuild, support_name
from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.effects import Change, Effects
from pcbatch.ir.ops import Expr
from pcbatch.ir.text.written import Written

PRIMITIVE = "__prim__"


def make_expr(
    unit: Unit,
    node: Node,
    variables: frozenset[str],
    *,
    arity: int = 1,
    shown: Node | None = None,
    parts: Mapping[str, Node] = MappingProxyType({}),
    changes: tuple[str, Change] | None = None,
) -> Expr:
    """The primitive that evaluates `node`.

    `variables` are the lane variables in scope, temporaries included. With `arity` other than one the value is
    unpacked into that many. `shown` is the expression whose source becomes the text, when `node` differs from
    it by calls of support functions. `parts` are the user's expressions that temporaries stand for. `changes` is a
    variable whose object Python changes in place, and how.
    """
    ins = lane_reads(unit, node, variables)
    shown = node if shown is None else shown
    text = one_line(shown)
    written = _written(text, shown, ins, parts)
    found = () if changes is None else (replace(changes[1], position=ins.index(changes[0])),)
    if unit.nested and used_nested(unit, node) or _passed(unit, node):
        fn = _compile(unit, node, ins, arity)
    else:
        fn = made_once(unit, node, ins, arity, lambda noted: _compile(noted, node, ins, arity))
    return Expr(text, ins, fn, written, Effects(found, streams=streams_in(unit, shown)))


def _written(text: str, shown: Node, ins: tuple[str, ...], parts: Mapping[str, Node]) -> Written:
    temporaries = {name: parts[name] for name in ins if name in parts}
    if not temporaries:
        return Written(text)

    def whole(node: Node) -> Node:
        if isinstance(node, gast.Name) and node.id in temporaries:
            return whole(temporaries[node.id])
        return rebuild(node, whole)

    return Written(text, one_line(whole(shown)), tuple(one_line(whole(node)) for node in temporaries.values()))


def used_nested(unit: Unit, node: Node) -> tuple[str, ...]:
    """Functions defined inside the user's function that `node` needs, also through one another."""
    direct = [name for name in free_names(node) if name in unit.nested]
    if not direct:
        return ()
    edges = {name: [read for read in nested_reads(unit, name) if read in unit.nested] for name in unit.nested}
    used = reachable(direct, edges)
    return tuple(name for name in unit.nested if name in used)


def used_imports(unit: Unit, node: Node) -> tuple[str, ...]:
    """The names read by `node` that an `import` in the body of the user's function binds."""
    return tuple(name for name in free_names(node) if name in unit.imports) if unit.imports else ()


def nested_reads(unit: Unit, name: str) -> tuple[str, ...]:
    """The free names of the definition of a nested function."""
    node = unit.nested[name]
    return free_names(node.value if isinstance(node, gast.Assign) else node)


def lane_reads(unit: Unit, node: Node, variables: frozenset[str]) -> tuple[str, ...]:
    """Lane variables that `node` reads, those of nested functions last, each in order of first appearance."""
    passed = _passed(unit, node)
    reads = [read for name in _reads(unit, node) for read in (passed[name].reads if name in passed else (name,))]
    return tuple(dict.fromkeys(name for name in reads if name in variables))


def _reads(unit: Unit, node: Node) -> list[str]:
    """All names that `node` reads, and then nested functions that it needs."""
    names = list(free_names(node))
    for name in used_nested(unit, node):
        names += nested_reads(unit, name)
    return names


@dataclass(frozen=True, slots=True)
class Passed:
    """A nested function that another function gets as an argument: primitives make it of the variables that it reads.

    def total(f, n): ...      def total(f, n, f.k):                                where `total(lambda x: x + k, n)`
        ... plus(f, n)    ==>     ... def __prim__(n, f.k): f = made(f.k); return plus(f, n)
                              def made(k): return lambda x: x + k
    """

    target: Target

    @property
    def _function(self) -> Node:
        nested = self.target.nested
        return nested.node if isinstance(nested.node, gast.Lambda) else load(nested.name, nested.node)

    @property
    def _ins(self) -> tuple[str, ...]:
        outer = self.target.nested.outer
        return lane_reads(outer, self._function, outer.variables)

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables that it reads, by their names in the function that gets it."""
        around = dict(self.target.captured)
        require_known(self.target.nested.outer, self._function, self._ins, around)
        return tuple(around[name] for name in self._ins)

    def made(self) -> FunctionType:
        """Return a function of these that makes it, compiled beside the function in which it is defined."""
        return _compile(self.target.nested.outer, self._function, self._ins, 1)


def passed_function(unit: Unit, name: str) -> Passed | None:
    """An argument that is a nested function, so that no variable of the lane has it; None for other names.

    One that assigns variables around it is none: only its calls by the program itself change these.
    """
    value = unit.statics.get(name)
    if not isinstance(value, Target) or value.nested is None or value.returned:
        return None
    return Passed(value)


def _passed(unit: Unit, node: Node) -> dict[str, Passed]:
    """The nested functions among the arguments that `node` reads."""
    names = dict.fromkeys(_reads(unit, node)) if unit.statics else ()
    return {name: passed for name in names if (passed := passed_function(unit, name)) is not None}


def default_expr(text: str, value: object) -> Expr:
    """Return a primitive without inputs whose value is an object that exists already."""
    return Expr(text, (), lambda: value)


def _compile(unit: Unit, node: Node, ins: tuple[str, ...], arity: int) -> FunctionType:
    passed = _passed(unit, node)
    params = {name: name if name.isidentifier() else f"{SUPPORT}in{k}" for k, name in enumerate(ins)}
    node = renamed(node, {name: param for name, param in params.items() if name != param})
    body = [
        _statement(f"{name} = {SUPPORT}{name}({', '.join(params[read] for read in each.reads)})", node)
        for name, each in passed.items()
    ]
    body += [gast.gast_to_ast(rewritten(unit, unit.nested[name])) for name in used_nested(unit, node)]
    body += _result(gast.gast_to_ast(rewritten(unit, node)), arity)
    body = [guarded_defaults(part) for part in body]
    constants = {**_imports(unit, body), SUPPORT: SUPPORT_MODULE}
    constants |= {f"{SUPPORT}{name}": each.made() for name, each in passed.items()}
    primitive = compile_inner(unit.fn, _definition(tuple(params.values()), body, node), PRIMITIVE, constants)
    assert primitive is not None  # all that it reads is a parameter, a global or a cell
    return kept(primitive, constants)


def _imports(unit: Unit, body: list[ast.stmt]) -> dict[str, object]:
    """The objects of the names that statements read and an `import` in the body of the user's function binds."""
    if not unit.imports:
        return {}
    read = {part.id for statement in body for part in ast.walk(statement) if isinstance(part, ast.Name)}
    return {name: value for name, value in unit.imports.items() if name in read}


def _definition(ins: tuple[str, ...], body: list[ast.stmt], at: Node) -> ast.stmt:
    definition = _statement(f"def {PRIMITIVE}({', '.join(ins)}):\n pass", at)
    assert isinstance(definition, ast.FunctionDef)
    definition.body = body
    return definition


def _statement(text: str, at: Node) -> ast.stmt:
    """A statement whose parts all stand where a node begins."""
    (statement,) = ast.parse(text).body
    for part in ast.walk(statement):
        if isinstance(part, ast.stmt | ast.expr | ast.arg):
            part.lineno = part.end_lineno = at.lineno
            part.col_offset = part.end_col_offset = at.col_offset
    return statement


def _result(value: ast.expr, arity: int) -> list[ast.stmt]:
    """Return one value, or unpack it with Python's own rules (and errors) and return the parts."""
    if arity == 1:
        return [ast.copy_location(ast.Return(value), value)]

    def parts(ctx: ast.expr_context) -> ast.expr:
        names: list[ast.expr] = [ast.copy_location(ast.Name(f"{SUPPORT}{i}", ctx), value) for i in range(arity)]
        return ast.copy_location(ast.Tuple(names, ctx), value)

    if not isinstance(value, ast.Tuple):  # a list of the lane may have another length
        count = ast.copy_location(ast.Constant(arity), value)
        value = ast.copy_location(ast.Call(_support_function(unpacked, value), [value, count], []), value)
    assign = ast.copy_location(ast.Assign([parts(ast.Store())], value), value)
    return [assign, ast.copy_location(ast.Return(parts(ast.Load())), value)]


N = TypeVar("N", bound=ast.AST)
SIMPLE = (ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.Attribute)  # no object that a call may change


def guarded_defaults(node: N) -> N:
    """Return the tree of a primitive with all such functions looked after (`data/functions/users_code.py`)."""
    guarded: N = _Guard().visit(node)
    return guarded


class _Guard(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if _makes_objects(node.args):
            node.decorator_list.append(_support_function(own_defaults, node))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        guarded = ast.copy_location(ast.Call(_support_function(own_defaults, node), [node], []), node)
        return guarded if _makes_objects(node.args) else node


def _makes_objects(args: ast.arguments) -> bool:
    return any(
        default is not None and not isinstance(default, SIMPLE) for default in (*args.defaults, *args.kw_defaults)
    )


def _support_function(function: Callable[..., Any], at: ast.AST) -> ast.expr:
    support = ast.copy_location(ast.Name(SUPPORT, ast.Load()), at)
    return ast.copy_location(ast.Attribute(support, support_name(function), ast.Load()), at)
