"""The tables of unsupported syntax, each entry with code, title, label and a help that can be followed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """The refusal of one type of node: the parts of its diagnostic."""

    code: str
    title: str
    label: str
    help: str


_ASYNC = Rule(
    "PCB106", "`async` and `await` are not supported", "lanes do not wait for events", "write a plain function"
)
_NAMES = (
    "leave the line out, and assign to a local name that has a value first, `count = 0`; to read an outer name no "
    "declaration is needed; what callers or a recursion are to see is a parameter and a further result: "
    "`return result, count`"
)

STATEMENTS: dict[str, Rule] = {
    "TryStar": Rule("PCB101", "`except*` is not supported", "a lane raises one exception at a time", "write `except`"),
    "Global": Rule("PCB107", "`global` is not supported", "a lane cannot rebind outer names", _NAMES),
    "Nonlocal": Rule("PCB107", "`nonlocal` is not supported", "a lane cannot rebind outer names", _NAMES),
    "Import": Rule(
        "PCB108",
        "this `import` cannot be followed",
        "it fails, or its name is bound again",
        "import at the top of the file",
    ),
    "ImportFrom": Rule(
        "PCB108",
        "this `import` cannot be followed",
        "it fails, or its name is bound again",
        "import at the top of the file",
    ),
    "ClassDef": Rule(
        "PCB109", "`class` is not supported here", "inside a batched function", "define it at the top of the file"
    ),
    "AsyncFunctionDef": _ASYNC,
    "AsyncFor": _ASYNC,
    "AsyncWith": _ASYNC,
}

YIELD_HELP = "let it be a statement, `yield value`, or collect the values in a list, and return it"
EXPRESSIONS: dict[str, Rule] = {
    "Yield": Rule("PCB105", "`yield` is not supported", "nothing is sent into a generator of a lane", YIELD_HELP),
    "YieldFrom": Rule("PCB105", "`yield` is not supported", "nothing is sent into a generator of a lane", YIELD_HELP),
    "Await": _ASYNC,
}

# Refused inside nested functions too, which otherwise are plain Python.
NESTED = frozenset({"Global", "Nonlocal", "Yield", "YieldFrom", "Await", "AsyncFunctionDef", "AsyncFor", "AsyncWith"})

KNOWN_STATEMENTS = frozenset(
    "FunctionDef Return Assign AugAssign AnnAssign For While If Match Delete Expr Pass Break Continue Assert "
    "Raise Try With".split()
)
KNOWN_EXPRESSIONS = frozenset(
    "BoolOp BinOp UnaryOp Lambda IfExp Dict Set ListComp SetComp DictComp GeneratorExp Compare Call FormattedValue "
    "JoinedStr NamedExpr Constant Attribute Subscript Starred Name List Tuple Slice".split()
)

_NAME_THEM = "name the variables it should use"
FORBIDDEN_BUILTINS = {
    **dict.fromkeys(("locals", "vars", "globals"), _NAME_THEM),
    **dict.fromkeys(
        ("eval", "exec"),
        'a lane runs no text: write the operators out, `if op == "+": ...`, or call it before the batched function '
        "and pass what it gives",
    ),
    "super": "name the class that has the method: `Base.method(self, x)`",
    "breakpoint": "leave it out, and step through one example with `f.plain(...)` under a debugger",
}

LOOP_HELPS = {
    "range": "write `range(stop)`, `range(start, stop)` or `range(start, stop, step)`",
    "enumerate": "write `enumerate(xs)` or `enumerate(xs, start)`",
    "zip": "write `zip(xs, ys)` or `zip(xs, ys, strict=True)`; for rows in a tuple or list `tuple(zip(*rows))`",
    "reversed": "write `reversed(xs)`",
}
REVERSED_HELPS = {
    "enumerate": "reverse what is inside: `zip(reversed(range(len(xs))), reversed(xs))`",
    "zip": "reverse what is inside, if all are equally long: `zip(reversed(xs), reversed(ys))`",
    "reversed": "leave both `reversed` out",
}
