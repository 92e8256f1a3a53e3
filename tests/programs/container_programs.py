"""Random programs as somebody writes them who knows Python only: lists, dicts, sets, None, objects, exceptions.

The entry and its helpers are plain functions; they change lists in place, give them second names, hand them to helpers
that change them, raise and catch. Loops and recursion are bounded, but a list may grow under another name while a loop
goes over it: what plain Python does not finish soon is left out.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np

from tests.programs.container_expressions import CONTAINERS, KINDS
from tests.programs.container_statements import ContainerStatements, Helper
from tests.programs.loops import Lines, indented
from tests.programs.tape import GLOBALS

NAMES = {"list": ("xs", "ys"), "grid": ("g",), "map": ("d",), "set": ("s",), "opt": ("o",), "node": ("r",)}
TAPE = 500  # bytes
DIGEST = """\
def digest(xs):
    t = 7
    for v in xs:
        t = (t * 31 + v) % 10007
    return t
"""


class Node:
    """An object that others refer to."""

    def __init__(self, word: int) -> None:
        self.word = word
        self.left: Node | None = None
        self.right: Node | None = None


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """Source text whose entry is `f0`, and the kinds of its parameters by name."""

    text: str
    params: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return f"program with parameters {dict(self.params)}:\n{self.text}"

    def load(self, name: str) -> Callable[..., Any]:
        """Execute the text so that its source can be found; gives the plain `f0`."""
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        namespace: dict[str, Any] = {**GLOBALS, "__name__": "a_program"}  # a class knows its module
        exec(compile(self.text, name, "exec"), namespace)
        fn: Callable[..., Any] = namespace["f0"]
        return fn

    def columns(self, seed: int, lanes: int) -> list[list[Any]]:
        """The arguments of each lane, by parameter."""
        rng = np.random.default_rng(seed)
        return [_column(rng, kind, lanes) for _, kind in self.params]


def _column(rng: np.random.Generator, kind: str, lanes: int) -> list[Any]:
    match kind:
        case "int":
            return [int(x) for x in rng.integers(-3, 9, lanes)]
        case "flt" | "flist":
            return []  # drawn by small programs
        case "list":
            return [[int(x) for x in rng.integers(-3, 9, rng.integers(0, 6))] for _ in range(lanes)]
    nodes = [Node(int(x)) for x in rng.integers(-3, 9, 2 * lanes)]
    some = [*nodes, None]
    for node in nodes:  # objects are shared, and refer to one another in cycles
        node.left, node.right = some[rng.integers(len(some))], some[rng.integers(len(some))]
    return [some[k] for k in rng.integers(0, len(some), lanes)]


def program_of(tape: bytes) -> PythonProgram:
    """The program that some random bytes stand for."""
    w = ContainerStatements(tape)
    w.style = "base"
    kinds = _some_kinds(w)
    w.helpers = tuple(_helper(w, k, kinds) for k in range(w.below(3)))
    params = [("a", "int"), ("b", "int")]
    params += [("xs", "list")] * ("list" in kinds and w.chance(2)) + [("r", "node")] * ("node" in kinds)
    entry = _entry(w, tuple(params), kinds)
    helpers = [_helper_text(w, h, kinds) for h in w.helpers]
    parts = ["\n".join(lines) + "\n" for lines in (entry, *helpers)]
    text = "\n".join([DIGEST, *_needed(parts)] if "digest(" in parts[0] else _needed(parts))
    return PythonProgram(text, tuple(params))


def _needed(functions: list[str]) -> list[str]:
    found, pending = {0}, [0]
    for k in pending:
        for called in range(1, len(functions)):
            if called not in found and f"h{called - 1}(" in functions[k].split(":", 1)[1]:
                found.add(called)
                pending.append(called)
    return [text for k, text in enumerate(functions) if k in found]


def programs() -> st.SearchStrategy[PythonProgram]:
    """A strategy for programs."""
    return st.binary(min_size=TAPE, max_size=TAPE).map(program_of)


def _some_kinds(w: ContainerStatements) -> list[str]:
    first = w.pick(("list", "list", "list", "map", "grid", "set", "opt", "node"))
    return [first, *(kind for kind in CONTAINERS if kind != first and w.chance(4))]


def _helper(w: ContainerStatements, k: int, kinds: list[str]) -> Helper:
    recursive = w.chance(3)
    params = [("n", "int")] * recursive + [("x", "int")] * w.below(2)
    params += [(NAMES[kind][0], kind) for kind in kinds if w.below(3)] or [("y", "int")]
    if ("xs", "list") in params and w.chance(4):
        params.append(("ys", "list"))
    result = w.pick(("int", "int", "int", "none", "none", *(k for k in kinds if k in ("list", "opt"))))
    return Helper(f"h{k}", tuple(params), result, recursive)


def _fresh(params: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name, kind in params:
        names[kind].append(name)
    return names


def _entry(w: ContainerStatements, params: tuple[tuple[str, str], ...], kinds: list[str]) -> Lines:
    w.start(_fresh(params), 2 + w.below(7), 4, _returns(w, kinds), "")
    lines = _locals(w, kinds, {name for name, _ in params})
    if w.chance(4):
        lines += _step(w)
    lines += w.statements()
    while w.budget > 0:
        lines += w.statement()
    last = f"    return {', '.join([*map(w.returned, w.returns), *_digests(w)])}"
    early = f"{''.join(', 0' for _ in _digests(w))}"
    body = [f"{line}{early}" if line.lstrip().startswith("return ") and "#" not in line else line for line in lines]
    return [f"def f0({', '.join(name for name, _ in params)}):", *indented(_unmarked(body)), last]


def _unmarked(lines: Lines) -> Lines:
    return [line.replace("  # of step", "") for line in lines]


def _returns(w: ContainerStatements, kinds: list[str]) -> tuple[str, ...]:
    raw = [kind for kind in kinds if kind in ("list", "grid", "map") and w.chance(3)]
    return ("int", *raw)


def _digests(w: ContainerStatements) -> list[str]:
    """What tells the contents of all variables."""
    found = ["x"]
    forms = {
        "list": "digest({})", "grid": "digest([digest(r) for r in {}])",
        "map": "digest({0}) + digest({0}.values())", "set": "digest(sorted({}))",
        "opt": "(-50 if {0} is None else {0})", "node": "(-60 if {0} is None else {0}.word)",
    }  # fmt: skip
    for kind, form in forms.items():
        found += [form.format(name) for name in w.scope.names[kind]]
    return found


def _locals(w: ContainerStatements, kinds: list[str], taken: set[str]) -> Lines:
    lines = [f"x, y = {w.below(3)}, {w.int_atom().text}"]
    w.scope.names["int"] += ["x", "y"]
    w.scope.assignable["int"] += ["x", "y"]
    for kind in kinds:
        for k, name in enumerate(NAMES[kind]):
            if name not in taken and (not k or w.chance(2)):
                if kind == "node":
                    continue
                lines.append(f"{name} = {w.of_container(kind, 1)}")
                w.scope.names[kind].append(name)
    if "node" in kinds:
        lines.append(f"q = {w.node()}")
        w.scope.names["node"].append("q")
    return lines


def _step(w: ContainerStatements) -> Lines:
    """A nested function that changes what is outside of it."""
    outer = w.scope
    w.scope = outer.inner()
    w.scope.names["int"] = ["k", "x"]
    w.scope.assignable["int"] = ["x"]
    left, w.calls, kept, w.budget = w.calls, 0, w.budget, 2
    rebound = [name for kind in CONTAINERS for name in outer.names[kind]]
    returns, w.returns, w.in_finally = w.returns, (), 1
    lines = w.statements()
    value = w.value(1)
    w.returns, w.in_finally = returns, 0
    w.calls, w.budget, w.scope = left, kept, outer
    w.steps = ["step"]
    text = "\n".join(lines)
    names = ["x", *(name for name in rebound if f"{name} = " in text or f"{name} +=" in text or f"{name} |=" in text
                    or f"{name} &=" in text or f"{name} -=" in text or f"{name} ^=" in text)]  # fmt: skip
    return ["def step(k):", f"    nonlocal {', '.join(names)}", *indented(lines), f"    return {value}  # of step"]


def _helper_text(w: ContainerStatements, h: Helper, kinds: list[str]) -> Lines:
    names = _fresh(h.params)
    w.start(names, 1 + w.below(4), 0, () if h.result == "none" else (h.result,), h.name)
    w.scope.assignable["int"] = [name for name in names["int"] if name != "n"]
    lines: Lines = []
    if not w.scope.assignable["int"]:
        lines.append("x = 1")
        w.scope.names["int"].append("x")
        w.scope.assignable["int"].append("x")
    if h.recursive:
        lines += ["if n <= 0:", f"    {w.return_line()}"]
    w.calls = 2
    lines += w.statements()
    if h.recursive and w.below(3):
        call = w.call_of((h.result,), 1) if w.calls > 0 else ""
        lines += [call] if call else []
    last = [w.return_line()] if h.result != "none" else []
    return [f"def {h.name}({', '.join(name for name, _ in h.params)}):", *indented(lines + last)]
