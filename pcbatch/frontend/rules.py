"""The table of what the language subset leaves out: code, title, label and a help that works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """Why a kind of node is refused and what to write instead."""

    code: str
    title: str
    label: str
    help: str


_ASYNC = Rule("PCB106", "`async` and `await` are not supported", "not supported", "write a plain function")
_NAMES = "assign to a local name and return it; to read an outer name no declaration is needed"

STATEMENTS: dict[str, Rule] = {
    "Try": Rule("PCB101", "`try` is not supported", "a lane cannot catch an exception", "test the condition with `if`"),
    "TryStar": Rule(
        "PCB101", "`try` is not supported", "a lane cannot catch an exception", "test the condition with `if`"
    ),
    "With": Rule(
        "PCB102", "`with` is not supported", "not supported in a lane", "open the context around the batched call"
    ),
    "Global": Rule("PCB107", "`global` is not supported", "a lane cannot rebind outer names", _NAMES),
    "Nonlocal": Rule("PCB107", "`nonlocal` is not supported", "a lane cannot rebind outer names", _NAMES),
    "Import": Rule(
        "PCB108", "`import` is not supported here", "inside a batched function", "import at the top of the file"
    ),
    "ImportFrom": Rule(
        "PCB108", "`import` is not supported here", "inside a batched function", "import at the top of the file"
    ),
    "ClassDef": Rule("PCB109", "`class` is not supported here", "inside a batched function", "define it outside"),
    "Match": Rule("PCB112", "`match` is not supported", "not supported", "write it with `if` and `elif`"),
    "Delete": Rule("PCB113", "`del` is not supported", "not supported", "leave it out: unused variables take no space"),
    "AsyncFunctionDef": _ASYNC,
    "AsyncFor": _ASYNC,
    "AsyncWith": _ASYNC,
}

EXPRESSIONS: dict[str, Rule] = {
    "Yield": Rule("PCB105", "`yield` is not supported", "a lane returns once", "collect the values in an array"),
    "YieldFrom": Rule("PCB105", "`yield` is not supported", "a lane returns once", "collect the values in an array"),
    "Await": _ASYNC,
    "NamedExpr": Rule(
        "PCB114", "`:=` is not supported", "assigns inside an expression", "assign in a statement of its own before"
    ),
}

# Refused inside nested functions too, which otherwise are plain Python.
NESTED = frozenset({"Global", "Nonlocal", "Yield", "YieldFrom", "Await", "AsyncFunctionDef", "AsyncFor", "AsyncWith"})

KNOWN_STATEMENTS = frozenset(
    "FunctionDef Return Assign AugAssign AnnAssign For While If Expr Pass Break Continue Assert Raise".split()
)
KNOWN_EXPRESSIONS = frozenset(
    "BoolOp BinOp UnaryOp Lambda IfExp Dict Set ListComp SetComp DictComp GeneratorExp Compare Call FormattedValue "
    "JoinedStr Constant Attribute Subscript Starred Name List Tuple Slice".split()
)

FORBIDDEN_BUILTINS = frozenset({"locals", "vars", "eval", "exec", "super", "globals", "input", "breakpoint"})

SUBSCRIPT_HELP = (
    "make a new value: `x = x.at[i].set(v)` for an array, `d = {**d, 'k': v}` for a dict",
    "`x = x.at[i].add(v)` for `x[i] += v`",
)
ATTRIBUTE_HELP = (
    "make a new value: `s = s._replace(f=v)` for a namedtuple, `dataclasses.replace(s, f=v)` for a dataclass"
)
LOOP_HELP = "go over `range(...)` or the leading axis of an array, with or without `enumerate`"
