"""Expressions of random programs whose calls are independent: what is pure, what calls, and the choices behind both."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

DRIVERS = ("fuel", "fuel", "fuel", "tree", "kids", "span")


@dataclass(frozen=True, slots=True)
class Function:
    """A function that calls itself: what its parameters are besides those that it counts down, and its result."""

    name: str
    params: tuple[tuple[str, str], ...]  # (name, kind)
    result: str


class ForkingExpressions:
    """Draws expressions of one program, with calls of its functions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.driver = self.pick(DRIVERS)
        self.failing = self.chance(3)  # may it raise?
        self.trying = self.chance(5)
        self.changing = self.chance(6)  # do functions change lists?
        self.functions: tuple[Function, ...] = ()
        self.inside: Function | None = None
        self.variables: dict[str, list[str]] = {}
        self.weight = 1.0  # how often what is being written runs in an activation
        self.calls = 0.0  # of the activation
        self.most = 1.0
        self.nesting = self.fresh = self.depth = self.budget = 0

    # Choices

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return self.random.randrange(n)

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.below(one_in) == 0

    def pick(self, choices: Sequence[T]) -> T:
        """One of some things."""
        return choices[self.below(len(choices))]

    def name(self, stem: str) -> str:
        """A name that this function has not yet."""
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def start(self, params: Sequence[tuple[str, str]], function: Function | None) -> None:
        """Begin a function."""
        own = {"fuel": "n", "span": "lo"}.get(self.driver)
        self.variables = {kind: [name for name, k in params if k == kind] for kind in ("int", "flt", "list", "bool")}
        self.variables["int"] += [own] if own and function else []
        self.variables["int"] += ["node.value"] if self.driver in ("tree", "kids") and function else []
        self.inside, self.calls, self.weight = function, 0.0, 1.0
        self.nesting = self.fresh = self.depth = 0

    # Calls

    def own_arguments(self) -> str:
        """What a call counts down."""
        if self.inside is None:
            return {"fuel": "n", "tree": "node", "kids": "node", "span": "0, len(xs)"}[self.driver]
        match self.driver:
            case "fuel":
                return self.pick(("n - 1", "n - 1", "n - 1", "n - 2", "n // 2", "n - 1 - n % 2"))
            case "tree":
                return self.pick(("node.left", "node.right"))
            case "kids":
                return self.pick(
                    ("node.kids[-1]", "kid", "kid", "kid") if self.kid else ("node.kids[0]", "node.kids[-1]")
                )
        return self.pick(("lo, mid", "mid, hi"))

    @property
    def kid(self) -> bool:
        """Whether a child is at hand as a loop variable."""
        return "kid.value" in self.variables["int"]

    def call(self, result: str | None = None) -> str:
        """A call; its arguments may be results of others."""
        functions = [f for f in self.functions if result in (None, f.result)]
        if not functions:
            return ""
        f = self.pick(functions)
        self.calls += self.weight
        self.depth += 1
        args = [self.own_arguments()]
        for name, kind in f.params:
            known = name in self.variables[kind]
            if known and (self.below(10 if name == "c" else 3) or kind == "list"):
                args.append(name)
            elif kind == "int" and self.depth < 2 and self.chance(6) and (inner := self.call("int")):
                args.append(f"{inner} % 5")
            elif kind == "int":
                args.append(self.pick((f"{self.int_()} % 7", f"({self.int_()} + 1) % 5", str(self.below(5)))))
            elif kind == "flt":
                args.append(self.pick((f"{self.flt()} * 0.5", "0.75")))
            else:
                args.append(self.pick(self.variables["list"]) if self.variables["list"] and self.below(3) else "[1, 2]")
        self.depth -= 1
        return f"{f.name}({', '.join(args)})"

    def some(self, kind: str) -> str:
        """A call whose result is an integer or a number with a fraction, or what is made of one."""
        if self.calls >= 7 or (self.weight > 1 and self.calls >= 5):
            return self.pure(kind)
        for result in (kind, self.pick(("int", "flt", "bool", "pair", "list"))):
            if result == "flt" and kind == "int":
                continue
            if call := self.call(result):
                return {"bool": f"(2 if {call} else 1)", "pair": f"{call}[0]", "list": f"len({call})"}.get(result, call)
        return self.pure(kind)

    # Expressions

    def int_(self) -> str:
        """An integer without calls."""
        names = self.variables["int"]
        choices = [self.pick(names) if names else "G", str(self.below(6))]
        if len(names) > 1:
            choices += [f"({self.pick(names)} - {self.pick(names)})", f"h0({self.pick(names)})"]
            choices += [f"h1({self.pick(names)}, {self.pick(names)})", f"max({self.pick(names)}, 2)"]
            choices.append(f"({self.pick(names)} if {self.pick(names)} > 1 else 3)")
        if self.variables["list"]:
            xs = self.pick(self.variables["list"])
            choices += [f"len({xs})", f"sum({xs})", f"({xs}[0] if {xs} else 1)"]
            choices += [f"{xs}[{self.pick(names) if names else 0}]"] * (self.failing and self.chance(3))
        return self.pick(choices)

    def flt(self) -> str:
        """A number with a fraction, without calls."""
        names = self.variables["flt"] or ["0.25"]
        return self.pick((self.pick(names), self.pick(names), f"({self.pick(names)} + {self.int_()})", "1.5"))

    def condition(self) -> str:
        """A condition without calls."""
        return self.pick((f"{self.int_()} % 2", f"{self.int_()} > {self.below(5)}", f"{self.int_()} == 1",
                          *(f"{x} > 0.5" for x in self.variables["flt"][:1]),
                          *self.variables["bool"]))  # fmt: skip

    def pure(self, kind: str) -> str:
        """A value without calls."""
        match kind:
            case "int":
                return self.int_()
            case "flt":
                return self.flt()
            case "pair":
                return f"{self.int_()}, {self.int_()}"
            case "bool":
                return f"{self.int_()} > {self.below(4)}"
            case "list":
                return f"[{self.int_()}]"
        return "None"

    def value(self, kind: str) -> str:
        """An integer or a number with a fraction, mostly with calls."""
        one, two = self.some(kind), self.some(kind)
        if kind == "bool":
            return self.truth()
        forms = [
            one, f"{one} + {two}", f"{one} + {two}", f"{one} + {two} + {self.pure(kind)}", f"{one} - 2 * {two}",
            f"max({one}, {two})", f"min({one}, {self.pure(kind)})", f"({one} if {self.condition()} else 3)",
            f"({one} if {self.condition()} else {two})", f"{self.pure(kind)} + {one}", f"{one} * 2 + {two}",
        ]  # fmt: skip
        if kind == "int":
            forms += [f"h0({one}) + {two}", f"({one}) * ({two}) % 13", f"h1({one}, {two})"]
            if self.driver == "fuel" and self.inside is not None and self.chance(2):
                bound, fold = self.pick(("2", "n % 3", "min(n, 3)")), self.pick(("sum", "sum", "max"))
                bound = "2" if fold == "max" else bound
                self.weight *= 2
                forms = [f"{fold}([{self.some('int')} + i for i in range({bound})])"]
                self.weight /= 2
        else:
            forms += [f"{one} * 0.5 + {two}", f"({one} + {two}) * 0.25"]
        return self.pick(forms)

    def truth(self) -> str:
        """A condition with calls."""
        one = self.call("bool") or f"{self.some('int')} > 2"
        two = self.call("bool") or f"{self.some('int')} % 2 == 0"
        return self.pick((one, f"{one} and {two}", f"{one} or {two}", f"not {one}", f"{one} and {self.condition()}",
                          f"{one} == {two}" if one.endswith(")") and two.endswith(")") else two))  # fmt: skip
