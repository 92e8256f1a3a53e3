"""Random programs whose calls are often independent of each other: recursion over numbers, spans of a list and trees.

Each activation calls two to four times, wherever a call can stand. All end: calls lower their fuel, and how much of it
there is at first follows from how often the functions of a program call.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.programs.container_programs import PythonProgram
from tests.programs.forking_expressions import Function
from tests.programs.forking_statements import ForkingStatements
from tests.programs.loops import Lines, indented

CALLS = 400  # of one example, about, at most
OWN = {"fuel": ("n",), "tree": ("node",), "kids": ("node",), "span": ("lo", "hi")}
ENDED = {"fuel": "n <= 0", "tree": "node is None", "kids": "not node.kids", "span": "hi - lo < 2"}
RESULTS = ("int",) * 6 + ("flt",) * 3 + ("pair", "pair", "bool", "none", "list")


class Tree:
    """A node with two children at most."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.left: Tree | None = None
        self.right: Tree | None = None


class Twig:
    """A node with a list of children."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.kids: list[Twig] = []


@dataclass(frozen=True, slots=True, repr=False)
class ForkingProgram(PythonProgram):
    """A program, with the fuel that its examples may have."""

    fuel: int = 3

    def load(self, name: str, more: Mapping[str, Any] | None = None) -> Callable[..., Any]:
        """Execute the text so that its source can be found; gives the plain `f0`."""
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        names: dict[str, Any] = {"G": 3, **(more or {})}
        exec(compile(self.text, name, "exec"), names)
        fn: Callable[..., Any] = names["f0"]
        return fn

    def columns(self, seed: int, lanes: int) -> list[list[Any]]:
        """The arguments of each lane, by parameter."""
        rng = np.random.default_rng(seed)
        return [self._column(rng, name, kind, lanes) for name, kind in self.params]

    def _column(self, rng: np.random.Generator, name: str, kind: str, lanes: int) -> list[Any]:
        match kind:
            case "int" if name == "n":
                return [int(x) for x in rng.integers(-1 if rng.integers(2) else 1, self.fuel + 1, lanes)]
            case "int":
                return [int(x) for x in rng.integers(-3, 9, lanes)]
            case "flt":
                return [float(x) / 4 for x in rng.integers(-6, 9, lanes)]
            case "list":
                return [[int(x) for x in rng.integers(-3, 9, rng.integers(0, 7))] for _ in range(lanes)]
            case "tree":
                return [_tree(rng, self.fuel) for _ in range(lanes)]
        return [_twig(rng, self.fuel) for _ in range(lanes)]


def _tree(rng: np.random.Generator, depth: int) -> Tree:
    node = Tree(int(rng.integers(-3, 9)))
    if depth > 1:
        node.left = _tree(rng, depth - 1) if rng.integers(4) else None
        node.right = _tree(rng, depth - 1) if rng.integers(4) else None
    return node


def _twig(rng: np.random.Generator, depth: int) -> Twig:
    node = Twig(int(rng.integers(-3, 9)))
    if depth > 1:
        node.kids = [_twig(rng, depth - 1) for _ in range(rng.integers(0, 4))]
    return node


class Writer(ForkingStatements):
    """Draws one program."""

    def program(self) -> ForkingProgram:
        """The program."""
        some = [p for p in (("a", "int"), ("c", "int"), ("p", "flt"), ("xs", "list")) if self.below(2)]
        if self.driver == "span" and ("xs", "list") not in some:
            some.append(("xs", "list"))
        count = self.pick((1, 1, 1, 2, 2, 3))
        results = [self.pick(RESULTS) for _ in range(count)]
        results = [self.pick(("int", "flt")) if r == "none" and k == 0 else r for k, r in enumerate(results)]
        if "flt" in results and ("p", "flt") not in some:
            some.append(("p", "flt"))  # floats have 64 bits then
        wraps = self.driver == "span" or self.below(5) < 2
        functions = []
        for k, result in enumerate(results):
            mine = [p for p in some if self.below(4) or (p[0] == "xs" and self.driver == "span") or not (wraps or k)]
            functions.append(Function(f"f{k + wraps}", tuple(mine), result))
        self.functions = tuple(functions)
        parts = [self.function(f) for f in functions]
        kinds = {"fuel": ("n", "int"), "tree": ("node", "tree"), "kids": ("node", "kids")}
        params = ([kinds[self.driver]] if self.driver in kinds else []) + some
        if wraps:
            parts.insert(0, self.entry(params))
        fuel = 1
        while fuel < 7 and self.most**fuel < CALLS:
            fuel += 1
        text = "\n".join("\n".join(part) + "\n" for part in (*parts, *self.helpers("\n".join(map("\n".join, parts)))))
        return ForkingProgram(text, tuple(params), fuel)

    def helpers(self, text: str) -> list[Lines]:
        """Functions that call nothing."""
        found = []
        if "h0(" in text:
            found.append(["def h0(x):", "    return x * 2 - 1 if x % 3 else x + G"])
        if "h1(" in text:
            found.append(["def h1(x, y):", "    if x > y:", "        return x - y", "    return (x * y) % 11"])
        return found

    def function(self, f: Function) -> Lines:
        """A function that calls itself, or others that call it."""
        self.start(f.params, f)
        node = "node.value" in self.variables["int"]
        if node and self.driver == "tree":
            self.variables["int"].remove("node.value")
        lines = [f"if {ENDED[self.driver]}:", f"    return {self.pure(f.result)}"]
        if node and self.driver == "tree":
            self.variables["int"].append("node.value")
        if self.chance(4):
            lines += [f"if {self.condition()}:", f"    return {self.pure(f.result)}"]
        if self.driver == "span":
            lines.append("mid = (lo + hi) // 2")
        self.budget = self.pick((0, 1, 1, 2, 2, 3, 4))
        lines += self.statements()
        lines += self.end(f.result)
        self.most = max(self.most, self.calls)
        params = ", ".join([*OWN[self.driver], *(name for name, _ in f.params)])
        return [f"def {f.name}({params}):", *indented(lines)]

    def entry(self, params: Sequence[tuple[str, str]]) -> Lines:
        """A function that only calls others."""
        self.start(params, None)
        lines: Lines = []
        self.budget = self.below(3)
        lines += self.statements()
        lines += self.end(self.pick(("int", "pair", "flt" if self.variables["flt"] else "int")))
        return [f"def f0({', '.join(name for name, _ in params)}):", *indented(lines)]


def forking_program(seed: int) -> ForkingProgram:
    """The program of a seed."""
    return Writer(seed).program()
