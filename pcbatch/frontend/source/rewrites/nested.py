"""Functions defined inside the user's function that become functions of the program (lambda lifting).

before:  def f(xs, n):                          after:  func @f(xs, n): r = call @dfs({ 0 }, xs, n)
             def dfs(i):                                func @dfs(i, xs, n): ... call @dfs({ i + 1 }, xs, n)
                 ... xs[i] ... dfs(i + 1) ...
             return dfs(0)

The variables that such a function reads of those around it become further parameters, those that it assigns by
`nonlocal` further results: Python looks them up when the function is called, so passing them at the call is exact.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

import gast

from pcbatch.frontend.source.callable_objects import callee_of
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.helpers import key_of
from pcbatch.frontend.source.locate import body_matches
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.same_code import compile_inner
from pcbatch.frontend.source.scope import bindings, free_names, parameters
from pcbatch.frontend.source.tree import SCOPES, Node, children
from pcbatch.ir.analysis.dataflow import reachable

DEFAULT = "__default__"


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """The definition of a nested function: the function in which it stands, and its tree (a `def` or a lambda)."""

    outer: Unit
    name: str
    node: Node


def function_of(definition: Node) -> Node:
    """The `def` itself, or the lambda in `name = lambda ...`."""
    return definition.value if isinstance(definition, gast.Assign) else definition


def known_definitions(unit: Unit) -> dict[str, Node]:
    """Return the definitions of the nested functions that a function can call: those in it and those around it."""
    around = {name: target.nested for name, target in unit.lifted.items() if target.nested is not None}
    found = {name: one.outer.definitions[name] for name, one in around.items() if name in one.outer.definitions}
    return {**found, **unit.nested, **unit.definitions}


def code_key(file: str, definition: Node) -> tuple[str, int, str]:
    """The place of a nested function, as `helpers.key_of` gives it for its code."""
    node = function_of(definition)
    lines: list[int] = [node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))]
    return (file, min(lines), getattr(node, "coded", getattr(node, "name", "<lambda>")))


def codes_of(unit: Unit, definition: Node) -> list[CodeType]:
    """The codes that a function defined in this one may have: more than one if they stand on one line."""
    key = code_key(unit.source.file, definition)
    return [code for code in unit.fn.__code__.co_consts if isinstance(code, CodeType) and key_of(code) == key]


def is_wanted(unit: Unit, definition: Node) -> bool:
    """Whether a function defined in this one is one of those that are compiled along."""
    return code_key(unit.source.file, definition) in unit.decisions.helpers


def ask(unit: Unit, definition: Node, node: Node, why: str) -> bool:
    """Ask for a nested function to be compiled along; False if it cannot be."""
    code = None if definition is None else next(iter(codes_of(unit, definition)), None)
    return unit.want(code, node, why)


def ask_called(unit: Unit, func: Node, node: Node, why: str) -> bool:
    """Ask for a function that a node names to be compiled along; False if it cannot be."""
    owner = _defining(unit, func.id) if isinstance(func, gast.Name) else None
    if owner is not None:
        return unit.want(next(iter(codes_of(owner, owner.definitions[func.id])), None), node, why)
    value = resolve(unit, func)
    fn = callee_of(value.__func__ if isinstance(value, classmethod) else value)[0]
    return unit.want(None if fn is None else fn.__code__, node, why)


def _defining(unit: Unit, name: str) -> Unit | None:
    """The function, this one or one around it, that defines a nested function; None if none does."""
    if name in unit.definitions or name not in unit.nested:
        return unit if name in unit.definitions else None
    target = unit.lifted.get(getattr(unit.node, "name", ""))
    return None if target is None or target.nested is None else _defining(target.nested.outer, name)


def to_lift(unit: Unit, nested: Mapping[str, Node]) -> frozenset[str]:
    """The names of nested functions that become functions of the program: those asked for, generators that go over
    themselves, and those that use them."""
    asked = [name for name, node in nested.items() if is_wanted(unit, node) or _goes_over_itself(unit, name, nested)]
    if not asked:
        return frozenset()
    users: dict[str, list[str]] = {name: [] for name in nested}
    for name, node in nested.items():
        for used in free_names(function_of(node)):
            if used in users:
                users[used].append(name)
    return reachable(asked, users)


def _goes_over_itself(unit: Unit, name: str, nested: Mapping[str, Node]) -> bool:
    """Whether a nested function is a generator that uses itself."""
    made = any(code.co_flags & inspect.CO_GENERATOR for code in codes_of(unit, nested[name]))
    return made and calls_itself(name, nested)


def lift(unit: Unit, names: frozenset[str], definitions: Mapping[str, Node]) -> dict[str, Target]:
    """The targets of calls of nested functions that become functions of the program."""
    targets: dict[str, Target] = {}
    for name in sorted(names):
        node = function_of(definitions[name])
        found = codes_of(unit, definitions[name])
        if len(found) > 1:
            found = [code for code in found if body_matches(node.body, code)]
        if len(found) != 1 or not all(is_cache(unit, d) for d in getattr(node, "decorator_list", ())):
            continue
        fn = _function(unit.fn, found[0], node)
        if fn is None:
            continue
        reads, writes = _scope(unit, name, definitions)
        captured = tuple((read, read) for read in reads)
        cached, definition = bool(getattr(node, "decorator_list", ())), Nested(unit, name, node)
        targets[name] = Target(fn, helper=True, cached=cached, captured=captured, returned=writes, nested=definition)
    return targets


def lift_lambda(unit: Unit, node: Node) -> Target | None:
    """The target of a lambda that another function gets as an argument; None if its code cannot be told apart."""
    name = f"lambda {node.lineno} {node.col_offset}"
    if name not in unit.passed:
        unit.passed.update(lift(unit, frozenset({name}), {**unit.definitions, name: node}))
    return unit.passed.get(name)


def static_value(unit: Unit, node: Node) -> Any:
    """The object of an argument that is known while compiling; None for others, and for numbers and arrays."""
    if isinstance(node, gast.Constant):
        return node.value if isinstance(node.value, str) else None
    if (passed := _passed_function(unit, node)) is not None:
        return passed
    value = resolve(unit, node)
    known = value is not MISSING and (unit.batched(value) is not None or _is_parameter(unit, node))
    return value if known else None


def _passed_function(unit: Unit, node: Node) -> Target | None:
    """A lambda, or a function that is defined in this one, as an argument of a function of the program."""
    if isinstance(node, gast.Name) and node.id in unit.lifted:
        return None
    if isinstance(node, gast.Lambda):
        return lift_lambda(unit, node)
    name = node.id if isinstance(node, gast.Name) else ""
    if name not in unit.definitions:
        return None
    if name not in unit.passed:
        unit.passed.update(lift(unit, frozenset({name}), unit.definitions))
    return unit.passed.get(name)


def _is_parameter(unit: Unit, node: Node) -> bool:
    return isinstance(node, gast.Name) and node.id in unit.statics


def has_cache(unit: Unit, definition: Node) -> bool:
    """Return whether a nested function has a cache of Python's among its decorators."""
    return any(is_cache(unit, decorator) for decorator in getattr(definition, "decorator_list", ()))


def is_cache(unit: Unit, decorator: Node) -> bool:
    """Whether a decorator is a cache of Python's, which changes no value."""
    made = decorator.func if isinstance(decorator, gast.Call) else decorator
    return any(resolve(unit, made) is cache for cache in (functools.cache, functools.lru_cache))


def _scope(unit: Unit, name: str, definitions: Mapping[str, Node]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The variables of the function around it that a nested function needs, also through others that it uses; and
    those among them that it assigns."""
    names: list[str] = []
    assigned: set[str] = set()
    for used in _used(name, definitions):
        node = function_of(definitions[used])
        names += [*free_names(node), *nonlocals(node)]
        assigned |= nonlocals(node)
        key = code_key(unit.source.file, node)
        assigned |= {changed for inside, changed in unit.decisions.changed if inside == key}
    known = [read for read in dict.fromkeys(names) if read in unit.variables]
    # A function that is an argument of the one around it, or stands around it, comes with the variables that it needs.
    targets = [{**unit.lifted, **unit.statics}.get(read) for read in dict.fromkeys(names)]
    further = [outer for target in targets if isinstance(target, Target) for _, outer in target.captured]
    assigned |= {outer for target in targets if isinstance(target, Target) for outer in target.assigned}
    reads = tuple(sorted({*known, *further}))
    return reads, tuple(read for read in reads if read in assigned)


def rebound(target: Target) -> frozenset[str]:
    """The names of `target.returned` that may get another object; the others are only changed in place."""
    nested: Nested | None = target.nested
    if nested is None:
        return frozenset(target.returned)
    definitions = {**nested.outer.definitions, nested.name: nested.node}
    nodes = [function_of(definitions[used]) for used in _used(nested.name, definitions)]
    names = (part for node in nodes for part in gast.walk(node) if isinstance(part, gast.Name))
    return frozenset(target.returned) & frozenset(name.id for name in names if isinstance(name.ctx, gast.Store))


def _used(name: str, definitions: Mapping[str, Node]) -> frozenset[str]:
    """A nested function and those that it uses, also through others."""
    return reachable([name], uses(definitions))


def read_around(name: str, definitions: Mapping[str, Node]) -> frozenset[str]:
    """Return the names of the function around it that a nested function reads, also in others that it uses."""
    used = [function_of(definitions[each]) for each in _used(name, definitions)]
    return frozenset(read for node in used for read in free_names(node))


def calls_itself(name: str, definitions: Mapping[str, Node]) -> bool:
    """Return whether a nested function uses itself, also through others."""
    used = uses(definitions)
    return name in reachable(used[name], used)


def uses(definitions: Mapping[str, Node]) -> dict[str, list[str]]:
    """Return for each nested function those that it reads."""
    return {
        each: [read for read in free_names(function_of(node)) if read in definitions and read not in _own(node)]
        for each, node in definitions.items()
    }


def _own(node: Node) -> frozenset[str]:
    """The names that a nested function binds itself."""
    node = function_of(node)
    body = [node.body] if isinstance(node, gast.Lambda) else node.body
    bound = {*parameters(node.args), *(name for name, _ in bindings(body))}
    return frozenset(bound) - nonlocals(node)


def nonlocals(node: Node) -> frozenset[str]:
    """The variables of functions around it that a function assigns, by itself or in functions inside it."""
    if isinstance(node, gast.Lambda):
        return frozenset()
    declared = frozenset(name for part in _statements(node.body, gast.Nonlocal) for name in part.names)
    bound = frozenset((*parameters(node.args), *(name for name, _ in bindings(node.body)))) - declared
    inner = [nonlocals(part) for part in _statements(node.body, gast.FunctionDef)]
    return declared | (frozenset[str]().union(*inner) - bound)


def _statements(nodes: list[Node], kind: type) -> Iterator[Node]:
    """The statements of one kind in a body, nested scopes left out."""
    for node in nodes:
        if isinstance(node, kind):
            yield node
        elif not isinstance(node, SCOPES) and isinstance(node, gast.stmt | gast.match_case | gast.ExceptHandler):
            yield from _statements(list(children(node)), kind)


def _function(outer: FunctionType, code: CodeType, node: Node) -> FunctionType | None:
    """A function object for a nested function: its cells are those of `outer`, and empty ones for what it captures."""
    cells = dict(zip(outer.__code__.co_freevars, outer.__closure__ or (), strict=True))
    closure = tuple(cells.get(name, CellType()) for name in code.co_freevars)
    fn = FunctionType(code, outer.__globals__, code.co_name, None, closure)
    try:
        fn.__defaults__ = tuple(_value(outer, default) for default in node.args.defaults) or None
        named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        fn.__kwdefaults__ = {arg.id: _value(outer, default) for arg, default in named if default is not None}
    except Exception:  # a default that reads a variable is refused by the checks
        return None
    return fn


def _value(outer: FunctionType, default: Node) -> Any:
    """The value of a default, which is evaluated where the function is defined."""
    if isinstance(default, gast.Constant):
        return default.value
    definition = ast.parse(f"def {DEFAULT}():\n pass").body[0]
    assert isinstance(definition, ast.FunctionDef)
    value = gast.gast_to_ast(default)
    definition.body = [ast.copy_location(ast.Return(value), value)]
    ast.copy_location(definition, value)
    function = compile_inner(outer, definition, DEFAULT, {})
    if function is None:
        raise LookupError
    return function()


def hidden_variables(target: Target) -> tuple[str, ...]:
    """Variables around a nested function that functions used by it need, but that it hides by its own names."""
    own = _own(target.nested.node)
    return tuple(inner for inner, _ in target.captured if inner in own)


def scope_of(target: Target | None, statics: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The further parameters of a function, and its further results: what it captures, and what functions among its
    arguments have captured. `statics` are the arguments that are known, by parameter."""
    params = [] if target is None else [inner for inner, _ in target.captured]
    results = [] if target is None else list(target.returned)
    for value in statics.values():
        if isinstance(value, Target):
            params += [outer for _, outer in value.captured]
            results += value.assigned
    return tuple(dict.fromkeys(params)), tuple(dict.fromkeys(results))
