"""Random programs whose calls are often independent of each other: recursion over numbers, spans of a list and trees.

Each activation calls two to four times, wherever a call can stand. All end: calls lower their fuel, and how much of it
there is at first follows from how often the functions of a program call.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tests.programs.container_programs import PythonProgram
from tests.programs.loops import Lines, indented

T = TypeVar("T")

CALLS = 400  # of one example, about, at most
DRIVERS = ("fuel", "fuel", "fuel", "tree", "kids", "span")
OWN = {"fuel": ("n",), "tree": ("node",), "kids": ("node",), "span": ("lo", "hi")}
ENDED = {"fuel": "n <= 0", "tree": "node is None", "kids": "not node.kids", "span": "hi - lo < 2"}
RESULTS = ("int",) * 6 + ("flt",) * 3 + ("pair", "pair", "bool", "none", "list")
RAISED = ("ValueError", "KeyError", "IndexError", "RuntimeError")
EXCEPTIONS = ("ValueError", "IndexError", "(ValueError, IndexError)", "Exception", "AssertionError")


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


@dataclass(frozen=True, slots=True)
class Function:
    """A function that calls itself: what its parameters are besides those that it counts down, and its result."""

    name: str
    params: tuple[tuple[str, str], ...]  # (name, kind)
    result: str


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


class Writer:
    """Draws one program."""

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

    # Programs

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

    def start(self, params: Sequence[tuple[str, str]], function: Function | None) -> None:
        """Begin a function."""
        own = {"fuel": "n", "span": "lo"}.get(self.driver)
        self.variables = {kind: [name for name, k in params if k == kind] for kind in ("int", "flt", "list", "bool")}
        self.variables["int"] += [own] if own and function else []
        self.variables["int"] += ["node.value"] if self.driver in ("tree", "kids") and function else []
        self.inside, self.calls, self.weight = function, 0.0, 1.0
        self.nesting = self.fresh = self.depth = 0

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
                return self.pick(("node.kids[-1]", "kid", "kid", "kid") if self.kid else ("node.kids[0]", "node.kids[-1]"))
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

    # Statements

    def end(self, kind: str) -> Lines:
        """How a function returns."""
        match kind:
            case "pair":
                tail = self.call("pair") if self.chance(4) else ""
                if tail:
                    return [f"return {tail}"]
                second = self.pick(("int", "int", "flt")) if self.inside is None and self.variables["flt"] else "int"
                if self.functions and self.chance(2) and (call := self.call("pair")) and (other := self.call("pair")):
                    x, y, z, w = (self.name("x") for _ in range(4))
                    return [f"{x}, {y} = {call}", f"{z}, {w} = {other}", f"return {x} + {z}, {self.pick((y, w))} - {x}"]
                return [f"return {self.value('int')}, {self.value(second)}"]
            case "list":
                one, two = self.call("list"), self.call("list")
                more = self.some("int")
                return [f"return {self.pick((f'{one} + {two}', f'[{self.int_()}] + {one}', f'{one} + [{more}]'))}"]
            case "none":
                return self.pick(([], ["return"], [call] if (call := self.call("none")) else []))
            case "bool":
                return [f"return {self.truth()}"]
        if self.chance(6) and (tail := self.call(kind)):
            return [f"return {tail}"]
        return [f"return {self.value(kind)}"]

    def statements(self) -> Lines:
        """Some statements, as long as there is a budget."""
        lines: Lines = []
        while self.budget > 0 and self.calls < 6:
            self.budget -= 1
            lines += [part for line in self.statement() for part in line.split("\n")]
            if self.nesting and self.chance(2):
                break
        return lines

    def statement(self) -> Lines:
        """One statement, maybe of several lines."""
        kind = "flt" if self.variables["flt"] and self.chance(3) else "int"
        draws: list[Callable[[str], Lines]] = [
            self.assign, self.assign, self.assign, self.branch, self.branch, self.early, self.ignored,
        ]  # fmt: skip
        draws += [self.loop, self.loop] if self.nesting < 2 else []
        draws += [self.fail] if self.failing else []
        draws += [self.caught] * 3 if self.trying else []
        draws += [self.change] * 3 if self.changing and self.variables["list"] else []
        return self.pick(draws)(kind)

    def keep(self, kind: str, name: str) -> None:
        """Make a variable known to what follows; known everywhere only outside of branches."""
        self.variables[kind].append(name)

    def assign(self, kind: str) -> Lines:
        """A variable gets the result of a call, or something pure."""
        name = self.name("x")
        if self.chance(5) and (call := self.call("pair")):
            other = self.name("y")
            lines = [f"{name}, {other} = {call}"]
            self.keep("int", other)
            kind = "int"
        elif self.chance(6):
            lines, kind = [f"{name} = {self.truth()}"], "bool"
        else:
            value = self.pure if self.chance(4) else self.some if self.below(3) else self.value
            lines = [f"{name} = {value(kind)}"]
        self.keep(kind, name)
        if kind == "int" and self.chance(4):
            lines.append(f"{name} += {self.some('int')}")
        return lines

    def block(self) -> Lines:
        """Statements whose new variables are not seen outside."""
        outer = {kind: [*names] for kind, names in self.variables.items()}
        self.nesting += 1
        self.budget += self.nesting < 2
        lines = self.statements()
        self.nesting -= 1
        self.variables = outer
        return lines

    def branch(self, kind: str) -> Lines:
        """Calls in one arm or in both."""
        name = self.name("x")
        calls = self.calls
        first = [f"{name} = {self.some(kind)}", *(self.block() if self.chance(3) else [])]
        most, self.calls = self.calls, calls
        second = [f"{name} = {self.pure(kind) if self.chance(2) else self.some(kind)}"]
        second += self.block() if self.chance(4) else []
        self.calls = max(most, self.calls)
        test = self.truth() if self.chance(5) else self.condition()
        if self.chance(3):
            lines = [f"{name} = {self.pure(kind)}", f"if {test}:", *indented(first)]
        else:
            lines = [f"if {test}:", *indented(first), "else:", *indented(second)]
        self.keep(kind, name)
        return lines

    def early(self, kind: str) -> Lines:
        """A return between calls."""
        result = self.inside.result if self.inside else ""
        test = self.truth() if self.chance(4) else self.condition()
        if not result or result == "none":
            return [f"if {test}:", *indented([f"{self.name('x')} = {self.some(kind)}"])]
        value = self.call(result) if self.chance(3) else self.pure(result)
        return [f"if {test}:", *indented([f"return {value}"])]

    def ignored(self, kind: str) -> Lines:
        """A call whose result nobody wants."""
        return [self.call() or "pass"]

    def loop(self, kind: str) -> Lines:
        """A loop with calls in it."""
        total, i = self.name("t"), self.name("i")
        outer = {k: [*names] for k, names in self.variables.items()}
        names = self.variables["int"]
        if self.driver == "kids" and self.inside is not None and not self.kid:
            head, more, times = ["for kid in node.kids:"], ["kid.value"], 2.0
        elif self.variables["list"] and self.chance(4):
            head, more, times = [f"for {i} in {self.pick(self.variables['list'])}[:2]:"], [i], 2.0
        elif self.chance(3):
            first = self.pick(("2", f"{self.pick(names) if names else 1} % 3"))
            head, more, times = [f"{i} = {first}", f"while {i} > 0:"], [], 2.0
        else:
            some = self.pick(names or ["G"])
            bound = self.pick(("2", "3", f"{some} % 3", f"min({some}, 3)"))
            head, more, times = [f"for {i} in range({bound}):"], [i], 2.0 if bound == "2" else 2.5
        self.variables["int"] = [*names, *more, total] if self.chance(4) else [*names, *more]
        self.weight *= times
        step = [f"{i} -= 1"] if head[-1].startswith("while") else []
        before = self.block() if self.chance(4) else []
        body = self.round(total, kind)
        after = self.block() if self.chance(5) else []
        self.weight /= times
        if self.chance(5):
            after += [f"if {self.condition()}:", f"    {self.pick(('break', 'continue'))}"]
        self.variables = outer
        zero = {"int": self.pick(("0", "0", "0", "1", "G")), "flt": self.pick(("0.0", "0.5"))}[kind]
        self.keep(kind, total)
        return [f"{total} = {zero}", *head, *indented([*step, *before, *body, *after])]

    def round(self, total: str, kind: str) -> Lines:
        """What a round of a loop does with its calls."""
        one = self.some(kind)
        forms = [
            [f"{total} += {one}"], [f"{total} += {one}"], [f"{total} = max({total}, {one})"],
            [f"{total} = {total} + {one} * 2"], [f"{total} -= {one}"], [f"{total} = {one} - {total}"],
            [f"if {self.condition()}:", f"    {total} += {one}"],
            [f"if {self.condition()}:", "    continue" if kind == "flt" else "    pass", f"{total} += {one}"],
        ]  # fmt: skip
        if kind == "int":
            forms += [[f"{total} = {total} * ({one}) % 17"], [f"{total} = {total} * 2 % 101 + {one}"]]
        else:
            forms += [[f"{total} = {total} * 0.5 + {one}"]]
        if self.calls < 4:
            forms += [[f"{total} += {self.value(kind)}"]]
        return self.pick(forms)

    def fail(self, kind: str) -> Lines:
        """What fails in some lanes."""
        test = self.condition()
        names = self.variables["list"]
        forms = [
            [f"if {test}:", f"    raise {self.pick(RAISED)}({self.pick(('', repr('bad')))})"],
            [f"assert {test}"],
            [f"assert {self.int_()} < {4 + self.below(5)}, 'large'"],
        ]
        if names:
            name = self.name("x")
            xs, index = self.pick(names), self.int_()
            forms.append([f"{name} = {xs}[{index}]"])
            if self.changing:
                forms.append([f"{xs}.pop()"])
        return self.pick(forms)

    def caught(self, kind: str) -> Lines:
        """Calls in a `try`."""
        name = self.name("x")
        body = [f"{name} = {self.some(kind)}"]
        body = [*(self.block() if self.chance(2) else []), *body]
        if self.chance(3):
            body += [f"if {self.condition()}:", f"    raise {self.pick(RAISED)}"]
        other = self.some(kind) if self.chance(4) else self.pure(kind)
        lines = ["try:", *indented(body), f"except {self.pick(EXCEPTIONS)}:", f"    {name} = {other}"]
        if self.chance(4):
            lines += ["finally:", f"    {self.name('z')} = {self.int_()}"]
        self.keep(kind, name)
        return lines

    def change(self, kind: str) -> Lines:
        """A list changes."""
        xs = self.pick(self.variables["list"])
        return [self.pick((f"{xs}.append({self.int_()})", f"{xs}.append({self.some('int')})",
                           f"if {xs}:\n    {xs}[0] = {self.int_()}"))]  # fmt: skip


def forking_program(seed: int) -> ForkingProgram:
    """The program of a seed."""
    return Writer(seed).program()
