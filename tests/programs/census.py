"""What random programs are made of, counted in their source; functions that the entry never calls do not count."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tests.programs.expressions import GLOBALS
from tests.programs.random_programs import RandomProgram

CONSTRUCTS = frozenset(
    {
        *(f"parameter: {kind}" for kind in ("int", "float", "bool", "array")),
        *("functions", "batched call", "recursion", "mutual recursion", "call in the arguments of a call"),
        *("default arguments", "keyword arguments", "keyword-only arguments", "arrays of 17 elements"),
        *("if", "while", "for range", "for enumerate", "for rows", "for rows of a matrix"),
        *("break", "continue", "else of a loop", "early return", "early return in a loop"),
        *("loop in a loop", "loop in a loop in a loop", "loop variable reused"),
        *("if with a batched call", "loop with a batched call", "while test with a batched call"),
        *("unpacking", "nested unpacking", "augmented assignment", "indexing", "in"),
        *(f".at[].{how}" for how in ("set", "add", "max", "min")),
        *("and", "or", "not", "ternary", "chained comparison", "float literal"),
        *(f"{name} with a batched call" for name in ("and", "or", "not", "ternary", "chained comparison", "in")),
        *("nested def", "nested lambda", "lambda called where it stands"),
        *("local with the name of a global", "global or its namesake read"),
        *("comprehension variable hides a local", "parameter of a nested function hides a local"),
    }
)
LOOPS = (ast.For, ast.While)
SCOPES = (ast.FunctionDef, ast.Lambda)


def census(program: RandomProgram) -> Counter[str]:
    """How often each construct occurs in one program."""
    functions = reachable(program.text)
    count: Counter[str] = Counter(f"parameter: {kind}" for _, kind in program.params)
    count["arrays of 17 elements"] += program.size == 17
    count["functions"] += len(functions)
    calls = {name: _callees(f, functions) for name, f in functions.items()}
    count["recursion"] += sum(name in called for name, called in calls.items())
    pairs = [(a, b) for a in calls for b in calls if a < b]
    count["mutual recursion"] += sum(b in calls[a] and a in calls[b] for a, b in pairs)
    for f in functions.values():
        count.update(_Function(f, frozenset(functions)).found())
    return count


def reachable(text: str) -> dict[str, ast.FunctionDef]:
    """The batched functions that calls from `f0` reach."""
    every = {f.name: f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef) and f.decorator_list}
    found = {"f0": every["f0"]}
    for f in (pending := [every["f0"]]):
        for name in _callees(f, every):
            if name not in found:
                found[name] = every[name]
                pending.append(every[name])
    return found


def _callees(f: ast.FunctionDef, known: dict[str, ast.FunctionDef]) -> set[str]:
    calls = [node.func for node in ast.walk(f) if isinstance(node, ast.Call)]
    return {func.id for func in calls if isinstance(func, ast.Name) and func.id in known}


class _Function:
    """One function's walk, with what stands around each node."""

    def __init__(self, f: ast.FunctionDef, batched: frozenset[str]) -> None:
        self.f = f
        self.batched = batched
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(f):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    def found(self) -> Iterator[str]:
        """A name for each construct, as often as it occurs."""
        yield from self._signature()
        for node in ast.walk(self.f):
            yield from self._statement(node)
            yield from self._expression(node)
            yield from self._names(node)

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node

    def _calls(self, node: ast.AST) -> bool:
        """Does it hold a call of a batched function?"""
        calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
        return any(isinstance(func, ast.Name) and func.id in self.batched for func in calls)

    def _signature(self) -> Iterator[str]:
        args = self.f.args
        yield from ["default arguments"] * bool(args.defaults or any(args.kw_defaults))
        yield from ["keyword-only arguments"] * bool(args.kwonlyargs)

    def _statement(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.While():
                yield "while"
                yield from self._loop(node)
            case ast.For(iter=ast.Call(func=ast.Name(id=name))):
                yield "for range" if name == "range" else "for enumerate"
                yield from self._loop(node)
            case ast.For():
                yield "for rows of a matrix" if isinstance(node.iter, ast.Call) else "for rows"
                yield from self._loop(node)
            case ast.Break() | ast.Continue():
                yield type(node).__name__.lower()
            case ast.If():
                yield "if"
                yield from ["if with a batched call"] * self._calls(node.test)
            case ast.Return():
                inside = [above for above in self._above(node) if isinstance(above, (*LOOPS, ast.If, *SCOPES))]
                if inside[0] is not self.f and not any(isinstance(a, SCOPES) for a in inside[:-1]):
                    yield "early return in a loop" if any(isinstance(a, LOOPS) for a in inside) else "early return"
            case ast.AugAssign():
                yield "augmented assignment"
            case ast.Assign(targets=[ast.Tuple(elts=elts)]):
                yield "nested unpacking" if any(isinstance(e, ast.Tuple) for e in elts) else "unpacking"
            case ast.Assign(value=ast.Lambda()):
                yield "nested lambda"
            case ast.FunctionDef() if node is not self.f:
                yield "nested def"

    def _loop(self, node: ast.For | ast.While) -> Iterator[str]:
        around = [above for above in self._above(node) if isinstance(above, LOOPS)]
        yield from ["loop in a loop"] * bool(around)
        yield from ["loop in a loop in a loop"] * (len(around) > 1)
        yield from ["else of a loop"] * bool(node.orelse)
        yield from ["loop with a batched call"] * any(map(self._calls, node.body))
        if isinstance(node, ast.While):
            yield from ["while test with a batched call"] * self._calls(node.test)
        elif isinstance(node.target, ast.Name) and node.target.id != "i":
            yield "loop variable reused"

    def _expression(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.BoolOp():
                name = "and" if isinstance(node.op, ast.And) else "or"
            case ast.UnaryOp(op=ast.Not()):
                name = "not"
            case ast.IfExp():
                name = "ternary"
            case ast.Compare() if len(node.ops) > 1:
                name = "chained comparison"
            case ast.Compare(ops=[ast.In() | ast.NotIn()]):
                name = "in"
            case ast.Call():
                yield from self._call(node)
                return
            case ast.Subscript(value=ast.Name(id="v" | "m" | "row")):
                yield "indexing"
                return
            case _:
                return
        yield name
        yield from [f"{name} with a batched call"] * self._calls(node)

    def _call(self, node: ast.Call) -> Iterator[str]:
        match node.func:
            case ast.Attribute(attr="set" | "add" | "max" | "min" as attr):
                yield f".at[].{attr}"
            case ast.Name(id=name) if name in self.batched:
                yield "batched call"
                yield from ["keyword arguments"] * bool(node.keywords)
                yield from ["call in the arguments of a call"] * any(map(self._calls, node.args))
            case ast.Lambda():
                yield "lambda called where it stands"

    def _names(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if name in {*GLOBALS, "twice"}:
                yield "local with the name of a global"
            case ast.Name(id=name, ctx=ast.Load()) if name in GLOBALS:
                yield "global or its namesake read"
            case ast.comprehension(target=ast.Name(id="x" | "y")):
                yield "comprehension variable hides a local"
            case ast.Constant(value=float()):
                yield "float literal"
            case ast.arg(arg="x") if not isinstance(self.parents[self.parents[node]], ast.Module):
                yield "parameter of a nested function hides a local"
