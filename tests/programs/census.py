"""What random programs are made of, counted in their source; functions that the entry never calls do not count."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tests.programs.random_programs import RandomProgram
from tests.programs.tape import GLOBALS

CONSTRUCTS = frozenset(
    {
        *(f"parameter: {kind}" for kind in ("int", "float", "bool", "array")),
        *("functions", "batched call", "recursion", "mutual recursion", "call in the arguments of a call"),
        *("default arguments", "keyword arguments", "keyword-only arguments", "arrays of 17 elements"),
        *("starred argument", "call of an inlined function"),
        *("if", "while", "for range", "for enumerate", "for rows", "for rows of a matrix"),
        *("for zip", "for reversed", "for unroll", "for over a display", "for over a dict", "negative step"),
        *("match", "capture of a case", "alternatives of a case", "guard of a case", "guard with a batched call"),
        *("tuple pattern", "starred pattern", "dict pattern", "case _", "match with a batched call"),
        *("assert", "assert with a message", "assert with a batched call", "raise", "raise with a message", "print"),
        *("break", "continue", "else of a loop", "early return", "early return in a loop"),
        *("loop in a loop", "loop in a loop in a loop", "loop variable reused"),
        *("if with a batched call", "loop with a batched call", "while test with a batched call"),
        *("unpacking", "nested unpacking", "starred unpacking", "augmented assignment", "indexing", "in"),
        *(":=", ":= in a test", ":= of a variable that the same statement reads", "del", "a list that grows"),
        *("dict", "dict from another", "value of a dict"),
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
    batched = frozenset(name for name, f in functions.items() if ast.unparse(f.decorator_list[0]) == "pcbatch.batch")
    count: Counter[str] = Counter(f"parameter: {kind}" for _, kind in program.params)
    count["arrays of 17 elements"] += program.size == 17
    count["functions"] += len(functions)
    calls = {name: _callees(f, functions) for name, f in functions.items()}
    count["recursion"] += sum(name in called for name, called in calls.items())
    pairs = [(a, b) for a in calls for b in calls if a < b]
    count["mutual recursion"] += sum(b in calls[a] and a in calls[b] for a, b in pairs)
    for f in functions.values():
        count.update(_Function(f, batched, frozenset(functions) - batched).found())
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


def _iterable(node: ast.expr) -> str:
    """What a loop goes over."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return f"for {name}"
        case ast.Call(func=ast.Attribute(attr="items")):
            return "for over a dict"
        case ast.Call(func=ast.Attribute(attr="unroll")):
            return "for unroll"
        case ast.Tuple() | ast.List():
            return "for over a display"
        case ast.Call():
            return "for rows of a matrix"
    return "for rows"


def _step(node: ast.expr) -> ast.expr | None:
    """The third argument of a range."""
    return node.args[2] if isinstance(node, ast.Call) and len(node.args) == 3 else None


class _Function:
    """One function's walk, with what stands around each node."""

    def __init__(self, f: ast.FunctionDef, batched: frozenset[str], inlined: frozenset[str]) -> None:
        self.f = f
        self.batched = batched
        self.inlined = inlined
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(f):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    def found(self) -> Iterator[str]:
        """A name for each construct, as often as it occurs."""
        yield from self._signature()
        for node in ast.walk(self.f):
            yield from self._statement(node)
            yield from self._failure(node)
            yield from self._pattern(node)
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
            case ast.For():
                yield _iterable(node.iter)
                yield from ["negative step"] * isinstance(_step(node.iter), ast.UnaryOp)
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
                kinds = {type(e) for e in elts}
                prefix = "starred " if ast.Starred in kinds else "nested " if ast.Tuple in kinds else ""
                yield f"{prefix}unpacking"
            case ast.Assign(value=ast.Lambda()):
                yield "nested lambda"
            case ast.Assign(value=ast.List(elts=[ast.Starred(), _])):
                yield "a list that grows"
            case ast.Delete():
                yield "del"
            case ast.FunctionDef() if node is not self.f:
                yield "nested def"

    def _failure(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Assert():
                yield "assert"
                yield from ["assert with a message"] * (node.msg is not None)
                yield from ["assert with a batched call"] * self._calls(node.test)
            case ast.Raise():
                yield "raise"
                yield from ["raise with a message"] * isinstance(node.exc, ast.Call)
            case ast.Call(func=ast.Name(id="print")):
                yield "print"

    def _pattern(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Match():
                yield "match"
                yield from ["match with a batched call"] * self._calls(node.subject)
            case ast.match_case(guard=ast.expr() as guard):
                yield "guard of a case"
                yield from ["guard with a batched call"] * self._calls(guard)
            case ast.MatchAs(name=str()):
                yield "capture of a case"
            case ast.MatchAs() if isinstance(self.parents[node], ast.match_case):
                yield "case _"
            case ast.MatchOr():
                yield "alternatives of a case"
            case ast.MatchSequence():
                yield "tuple pattern"
            case ast.MatchStar():
                yield "starred pattern"
            case ast.MatchMapping():
                yield "dict pattern"

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
            case ast.Subscript(slice=ast.Constant(value=str())):
                yield "value of a dict"
                return
            case ast.Dict():
                yield "dict from another" if None in node.keys else "dict"
                return
            case ast.NamedExpr():
                yield from self._walrus(node)
                return
            case _:
                return
        yield name
        yield from [f"{name} with a batched call"] * self._calls(node)

    def _walrus(self, node: ast.NamedExpr) -> Iterator[str]:
        yield ":="
        statement = next(above for above in self._above(node) if isinstance(above, ast.stmt | ast.match_case))
        parts = list(ast.walk(getattr(statement, "test", statement)))
        yield from [":= in a test"] * (hasattr(statement, "test") and node in parts)
        reads = [part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
        yield from [":= of a variable that the same statement reads"] * (node.target.id in reads)

    def _call(self, node: ast.Call) -> Iterator[str]:
        match node.func:
            case ast.Attribute(attr="set" | "add" | "max" | "min" as attr):
                yield f".at[].{attr}"
            case ast.Name(id=name) if name in self.batched:
                yield "batched call"
                yield from ["keyword arguments"] * bool(node.keywords)
                yield from ["starred argument"] * any(isinstance(arg, ast.Starred) for arg in node.args)
                yield from ["call in the arguments of a call"] * any(map(self._calls, node.args))
            case ast.Name(id=name) if name in self.inlined:
                yield "call of an inlined function"
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
