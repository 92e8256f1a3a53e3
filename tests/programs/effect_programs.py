"""Random terminating programs: a grammar of what the language has, as source text.

Integers stay small (every assignment is taken modulo a prime), loops run on counters of their own and recursion
on fuel, so that every program ends for every input and plain Python agrees with int32.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import pcbatch

PARAMETERS = ("a", "b", "fuel")
VARIABLES = ("a", "b", "x", "y", "z")


class Writer:
    """Draws one program; all choices come from the seed."""

    def __init__(self, seed: int, size: int, functions: int, effects: bool = False) -> None:
        self.random = random.Random(seed)
        self.budget = size
        self.effects = effects
        self.names = [f"f{k}" for k in range(functions)]
        self.loops = 0
        self.calls = 0
        self.places = 0

    def source(self) -> str:
        """The text of all functions."""
        share = self.budget
        parts = []
        for name in self.names:
            self.budget, self.calls, self.loops = share, 0, 0
            parts.append(f"@pcbatch.batch\ndef {name}({', '.join(PARAMETERS)}):")
            parts.append("    x, y, z = 1, a, b - a")
            parts.extend(self.block(1, in_loop=False))
            parts.append(f"    return {self.result()}\n")
        return "\n".join(parts)

    def block(self, indent: int, in_loop: bool) -> list[str]:
        """A few statements."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, 4)):
            lines.extend(self.statement(indent, in_loop))
        return lines

    def statement(self, indent: int, in_loop: bool) -> list[str]:
        """One statement with what it contains."""
        self.budget -= 1
        kinds = ["assign", "assign", "swap", "augment"]
        if self.budget > 0 and indent < 5:
            kinds += ["if", "if", "if else", "for", "while", "guarded jump", "call", "call", "return"]
        kinds += ["print", "fail", "assert"] if self.effects else []
        kind = self.random.choice(kinds)
        pad = "    " * indent
        match kind:
            case "assign":
                return [f"{pad}{self.variable()} = {self.bounded()}"]
            case "swap":
                left, right = self.random.sample(VARIABLES, 2)
                return [f"{pad}{left}, {right} = {self.bounded()}, {left}"]
            case "augment":
                name = self.variable()
                return [f"{pad}{name} {self.random.choice(('+=', '-='))} {self.atom()}", f"{pad}{name} %= 89"]
            case "if":
                return [f"{pad}if {self.condition()}:", *self.block(indent + 1, in_loop)]
            case "if else":
                middle = []
                if self.random.random() < 0.3:
                    middle = [f"{pad}elif {self.condition()}:", *self.block(indent + 1, in_loop)]
                return [
                    f"{pad}if {self.condition()}:",
                    *self.block(indent + 1, in_loop),
                    *middle,
                    f"{pad}else:",
                    *self.block(indent + 1, in_loop),
                ]
            case "for" | "while":
                return self.loop(kind, indent)
            case "guarded jump":
                jump = self.random.choice(["break", "continue"]) if in_loop else f"return {self.result()}"
                return [f"{pad}if {self.condition()}:", f"{pad}    {jump}"]
            case "return":
                return [f"{pad}if {self.condition()}:", f"{pad}    return {self.result()}"]
            case "call":
                return self.call(indent)
            case "print" | "fail" | "assert":
                return [pad + line for line in self.effect(kind)]
        raise AssertionError(kind)

    def effect(self, kind: str) -> list[str]:
        """Something printed, or a failure that is not too likely; its text tells the place."""
        self.places += 1
        text = f'f"{self.places}: {{{self.variable()}}} {{{self.bounded()}:03d}}"'
        rare = f"{self.atom()} % {self.random.randint(5, 11)} == {self.random.randint(0, 4)} and {self.condition()}"
        match kind:
            case "print":
                return [f"print({text}, {self.atom()})"]
            case "fail":
                return [f"if {rare}:", f"    raise ValueError({text})"]
        return [f"assert not ({rare}), {text}"]

    def loop(self, kind: str, indent: int) -> list[str]:
        """A loop that ends; sometimes with an else."""
        self.loops += 1
        pad, counter = "    " * indent, f"i{self.loops}"
        if kind == "for":
            bound = f"range({self.atom()} % {self.random.randint(2, 4)})"
            head = [f"{pad}for {counter} in {bound}:"]
        else:
            head = [f"{pad}{counter} = {self.random.randint(1, 3)}"]
            more = f" and {self.condition()}" if self.random.random() < 0.5 else ""
            head += [f"{pad}while {counter} > 0{more}:", f"{pad}    {counter} -= 1"]
        lines = [*head, *self.block(indent + 1, in_loop=True)]
        if self.random.random() < 0.25:
            lines += [f"{pad}else:", *self.block(indent + 1, in_loop=False)]
        return lines

    def call(self, indent: int) -> list[str]:
        """A call that burns fuel; at most three in a function, so that the tree of calls stays small."""
        if self.calls >= 3:
            return [f"{'    ' * indent}pass"]
        self.calls += 1
        pad = "    " * indent
        name = self.random.choice(self.names)
        text = f"{name}({self.bounded()}, {self.atom()}, fuel - 1)"
        form = self.random.randint(0, 3)
        if form == 0:
            return [f"{pad}if fuel > 0:", f"{pad}    return {text}[0], {self.atom()}"]
        if form == 1:
            return [f"{pad}if fuel > 0:", f"{pad}    {self.variable()}, {self.variable()} = {text}"]
        if form == 2:
            return [f"{pad}{self.variable()} = {text}[1] if fuel > 0 and {self.condition()} else {self.atom()}"]
        return [f"{pad}if fuel > 0:", f"{pad}    return {text}"]

    def result(self) -> str:
        """Every function returns a pair."""
        return f"{self.bounded()}, {self.atom()}"

    def variable(self) -> str:
        """Something to assign."""
        return self.random.choice(VARIABLES)

    def atom(self) -> str:
        """A variable or a small number."""
        return self.random.choice([*VARIABLES, *VARIABLES, "fuel", str(self.random.randint(-3, 9))])

    def bounded(self) -> str:
        """An expression between 0 and 96."""
        return f"({self.expression(2)}) % 97"

    def expression(self, depth: int) -> str:
        """Arithmetic, now and then a ternary."""
        if depth == 0 or self.random.random() < 0.3:
            return self.atom()
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        match self.random.randint(0, 5):
            case 0:
                return f"({left} if {self.condition()} else {right})"
            case 1:
                return f"({left}) // {self.random.randint(2, 5)}"
            case 2:
                return f"({left}) * ({right})"
            case 3:
                return f"({left}) - ({right})"
        return f"({left}) + ({right})"

    def condition(self) -> str:
        """Comparisons and what joins them."""
        comparison = f"{self.atom()} {self.random.choice(('<', '<=', '>', '==', '!='))} {self.atom()}"
        match self.random.randint(0, 6):
            case 0:
                return f"({comparison} and {self.atom()} > {self.atom()})"
            case 1:
                return f"({comparison} or not {self.atom()} % 2)"
            case 2:
                return f"{self.atom()} < {self.atom()} <= {self.atom()}"
            case 3:
                return f"not {comparison}"
        return comparison


def random_source(seed: int, size: int = 12, functions: int = 2, effects: bool = False) -> str:
    """The text of a program; its entry is `f0`. With `effects` lanes may print and fail."""
    return Writer(seed, size, functions, effects).source()


def load(text: str, name: str) -> Callable[..., Any]:
    """Execute the text so that its source can be found; gives `f0`."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {"pcbatch": pcbatch}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f0"]
