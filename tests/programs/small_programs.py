"""Random programs of a few statements over two or three kinds of Python's own data: most combinations of features occur.

Where `container_programs` draws one long program, this draws many small ones, which a compiler of seconds can be given
by the thousand. What they are made of is in `small_tables`.
"""

from __future__ import annotations

import collections
import heapq
import linecache
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.programs.container_programs import PythonProgram
from tests.programs.loops import Lines, indented
from tests.programs.small_tables import ANYWHERE, BOOL, EXCEPTIONS, FLOAT, INT, KINDS, NEW, RAISED, STATEMENTS
from tests.programs.tape import Tape

HOLE = re.compile(r"\$(\w+)")
SIZES = (1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 9)  # of bodies, in statements
FEATURES = ("list", "list", "grid", "map", "lmap", "set", "deque", "pairs", "tmap", "count", "opt", "node", "cell", "text",
            "flt", "flist")  # fmt: skip
STEMS = {"int": "i", "flt": "z", "list": "row", "text": "ch"}
CAPITALS = {kind.upper(): kind for kind in KINDS}
EXPRESSIONS: Mapping[str, Sequence[str]] = {"int": INT, "flt": FLOAT, "bool": BOOL}
SHOWN = """\
def shown(e):
    t, n = 1, 5
    while e is not None and n:
        t = (t * 7 + e.value) % 1009
        n -= 1
        e = e.next
    return t
"""


@dataclass(eq=False)
class Cell:
    """A record that programs make and change."""

    value: int
    next: Cell | None = None


@dataclass(frozen=True, slots=True)
class Helper:
    """A function without a decorator: parameters (name, kind), the kind of its result or "none"; and how it is made."""

    name: str
    params: tuple[tuple[str, str], ...]
    result: str
    recursive: bool


class Writer(Tape):
    """Draws one program."""

    def __init__(self, tape: bytes, smooth: bool = False) -> None:
        super().__init__(tape)
        self.smooth = smooth
        kinds = ["flt", "flist", "list", "grid"] if smooth else list(FEATURES)
        features = ["int", *(["flt"] if smooth else [])]
        for _ in range(1 + self.below(3)):
            features.append(self.pick(kinds))
        self.kinds = list(dict.fromkeys(features))
        self.variables: dict[str, list[str]] = {}
        self.helpers: tuple[Helper, ...] = ()
        self.generator = self.step = self.inside = ""
        self.result = "0"
        self.budget = self.nesting = self.depth = self.trying = 0

    # Programs

    def program(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Its text and parameters."""
        if self.below(3) == 0:
            self.helpers = tuple(self.some_helper(k) for k in range(1 + self.chance(3)))
        generator = "g0" if not self.smooth and self.chance(8) else ""
        params = [("a", "int"), ("b", "int")]
        params += [("xs", "list")] * ("list" in self.kinds and self.below(3) < 2) + [("r", "node")] * ("node" in self.kinds)
        params += [("p", "flt")] * ("flt" in self.kinds or "flist" in self.kinds)
        params += [("fs", "flist")] * ("flist" in self.kinds and self.below(2))
        parts = []
        for helper in self.helpers:
            parts.append(self.helper_text(helper))
        if generator:
            self.start((("n", "int"),), "g0", 1)
            self.result, inner = "", self.variables
            body = self.statements()
            self.variables = inner
            parts.append(["def g0(n):", *indented([f"for i in range(n % 5):", "    yield i", *body, f"yield {self.expression('int')}"])])
        self.generator = generator
        self.start(tuple(params), "", self.pick(SIZES))
        lines = self.beginning({name for name, _ in params})
        if not self.smooth and self.chance(8):
            lines += self.nested()
        early = self.result = self.results()
        body = self.statements()
        entry = [f"def f0({', '.join(name for name, _ in params)}):", *indented([*lines, *body, f"return {early}"])]
        text = "\n\n".join(_needed(["\n".join(part) for part in (entry, *parts)]))
        if "shown(" in text:
            text += "\n\n" + SHOWN
        return text + "\n", tuple(params)

    def start(self, params: tuple[tuple[str, str], ...], inside: str, budget: int) -> None:
        """Begin a function."""
        self.variables = {kind: [name for name, k in params if k == kind] for kind in KINDS}
        self.inside, self.budget, self.fresh = inside, budget, 0
        self.nesting = self.depth = self.trying = 0
        self.step = ""

    def some_helper(self, k: int) -> Helper:
        """How a helper is called."""
        recursive = self.chance(3)
        params = [("n", "int")] * recursive + [("a", "int")] * (self.below(2))
        params += [(KINDS[kind][0], kind) for kind in self.kinds if kind != "int" and self.below(4)]
        results = ("flt", "flt", "none") if self.smooth else ("int", "int", "none", *(k for k in self.kinds if k in ("flt",)))
        return Helper(f"h{k}", tuple(params or [("a", "int")]), self.pick(results), recursive)

    def helper_text(self, helper: Helper) -> Lines:
        """A helper; one that is recursive counts `n` down."""
        self.start(helper.params, helper.name, 1 + self.below(3))
        lines = [] if self.variables["int"] else ["x = 1"]
        self.variables["int"] += ["x"] * bool(lines)
        if helper.recursive:
            self.variables["int"].remove("n")
            if not self.variables["int"]:
                lines.append("x = n")
                self.variables["int"].append("x")
        kind = helper.result
        self.result = "" if kind == "none" else self.expression(kind)
        if helper.recursive:
            lines += ["if n <= 0:", f"    return {self.result}"]
        body = self.statements()
        if helper.recursive:
            call = self.call_of(helper)
            body.append(call if kind == "none" else f"return {call} + {self.expression(kind)}" if self.below(2) else f"return {call}")
        elif kind != "none":
            body.append(f"return {self.expression(kind)}")
        return [f"def {helper.name}({', '.join(name for name, _ in helper.params)}):", *indented([*lines, *body])]

    def beginning(self, taken: set[str]) -> Lines:
        """Variables of each kind."""
        lines = []
        for kind in self.kinds:
            name = KINDS[kind][0]
            if name in taken:
                continue
            lines.append(f"{name} = {self.new(kind)}" if kind != "int" else f"x = {self.pick(('0', '1', 'a', 'b'))}")
            self.variables[kind].append(name)
        for kind in self.kinds:
            if kind not in ("int", "node") and self.chance(4):
                lines.append(f"{KINDS[kind][0]}2 = {self.new(kind)}")
                self.variables[kind].append(f"{KINDS[kind][0]}2")
        return lines

    def nested(self) -> Lines:
        """A nested function that changes what is outside of it."""
        outer = {kind: [*names] for kind, names in self.variables.items()}
        kept, self.budget, self.variables["int"], self.result = self.budget, 1, ["x", "k"], "k"
        body = self.statements()
        value = self.expression("int")
        self.budget, self.variables = kept, outer
        text = "\n".join(body)
        every = [name for names in outer.values() for name in names]
        assigned = [n for n in every if re.search(rf"(^|[\s,]){n}(, \w+)* ([-+*|&^]?=) ", text, re.MULTILINE) or f", {n} = " in text]
        names = list(dict.fromkeys(["x", *assigned, *(n for n in every if re.search(rf"[*, ]{n}( = |,)", text))]))
        self.step = "step"
        return ["def step(k):", f"    nonlocal {', '.join(n for n in names if n != 'k')}", *indented(body), f"    return ({value}) % 53"]

    def results(self) -> str:
        """What tells the contents of all variables."""
        if self.smooth:
            terms = [f"{name} * {k + 1}.5" for k, name in enumerate(self.variables["flt"])]
            terms += [f"sum([v * (i + {k + 1}.25) for i, v in enumerate({name})])" for k, name in enumerate(self.variables["flist"])]
            return " + ".join(terms)
        found = []
        for kind, names in self.variables.items():
            for name in names:
                if name not in ("a", "b") or self.below(2):
                    found.append(KINDS[kind][1].replace("$V", name))
        return ", ".join(found)

    # Statements

    def statements(self) -> Lines:
        """One or more."""
        lines = self.statement()
        while self.budget > 0 and (self.nesting == 0 or self.below(2)):
            lines += self.statement()
        return lines

    def statement(self) -> Lines:
        """Any that the variables allow."""
        self.budget -= 1
        for _ in range(20):
            kind = self.pick(["int", "any", "any", *self.kinds[1:] * 3])
            table = ANYWHERE if kind == "any" else STATEMENTS[kind]
            template = self.pick(table)
            if "$block" in template and (self.nesting >= 3 or self.budget < 0) or not self.possible(template):
                continue
            if "return" in template and not self.result:
                continue
            return self.filled(template, kind)
        return [f"{self.pick(self.variables['int'])} = {self.value()}"]

    def possible(self, template: str) -> bool:
        """Are there variables for all holes?"""
        for hole in HOLE.findall(template):
            if hole.startswith("CALL_") and not (self.depth < 2 and self.callable(hole[5:])):
                return False
            if hole == "GEN" and not self.generator or hole == "STEP" and not self.step:
                return False
            kind = CAPITALS.get(hole.rstrip("2"))
            if kind and not self.variables[kind]:
                return False
            if hole == "flt" and not self.variables["flt"]:
                return False
        return True

    def filled(self, template: str, kind: str) -> Lines:
        """A statement whose holes are filled; mostly tested first if it needs an element."""
        tested, template = template.startswith("@"), template.lstrip("@")
        outer = {k: [*names] for k, names in self.variables.items()}
        fresh = dict.fromkeys(re.findall(r"\$(new\d?_\w+)", template))
        bound = {new: self.new_name(STEMS[new.split("_")[1]]) for new in fresh}
        lines: Lines = []
        for line in template.split("\n"):
            indent = line[: len(line) - len(line.lstrip())]
            if line.strip() == "$block":
                inner = {k: [*names] for k, names in self.variables.items()}
                for new in fresh:
                    self.variables[new.split("_")[1]].append(bound[new])
                trying = "try:" in lines[-1] if lines else False
                self.nesting, self.trying = self.nesting + 1, self.trying + trying
                body = self.statements()
                self.nesting, self.trying = self.nesting - 1, self.trying - trying
                self.variables = inner
                lines += [indent + part for part in body]
            else:
                lines.append(self.fill(line, bound, kind))
        self.variables = outer
        first = next((bound[h] for h in HOLE.findall(template) if h in bound and h in CAPITALS), "")
        first = next((bound[h] for h in HOLE.findall(template) if h in bound and CAPITALS.get(h) not in (None, "int", "flt")), first)
        if tested and first and self.below(8 if not self.trying else 3):
            lines = [f"if {first}:", *indented(lines)]
        return lines

    # Expressions

    def fill(self, template: str, bound: dict[str, str], kind: str = "int") -> str:
        """A template with its holes filled."""

        def hole(match: re.Match[str]) -> str:
            name = match.group(1)
            if name in bound and name not in ("val", "int", "lit"):
                return bound[name]
            if (of := CAPITALS.get(name.rstrip("2"))) is not None:
                bound[name] = self.pick(self.variables[of])
                return bound[name]
            return self.other(name, kind)

        return HOLE.sub(hole, template)

    def other(self, name: str, kind: str) -> str:
        """What fills a hole that is no variable."""
        match name:
            case "int" | "flt" | "bool":
                return self.expression(name)
            case "val":
                return self.value()
            case "lit":
                return str(self.below(4))
            case "pos":
                return str(2 + self.below(4)) if not self.trying or self.below(2) else self.pick(self.variables["int"])
            case "new":
                return self.new(kind)
            case "EXC":
                return self.pick(EXCEPTIONS)
            case "RAISED":
                return self.pick(RAISED)
            case "RESULT":
                return self.result
            case "GEN":
                return f"{self.generator}({self.pick(self.variables['int'])})"
            case "STEP":
                return f"{self.step}({self.value()})"
        return self.call_of(self.pick(self.callable(name.removeprefix("CALL_"))))

    def new(self, kind: str) -> str:
        """An object of a kind."""
        return self.drawn(NEW[kind], kind)

    def value(self) -> str:
        """A small integer."""
        if self.depth >= 2 or self.below(2):
            return self.pick([*self.variables["int"], str(self.below(10) - 2)])
        return f"({self.expression('int')}) % 97"

    def expression(self, kind: str) -> str:
        """An integer, a number or a condition."""
        if kind != "bool" and (self.depth >= 2 or self.below(3) == 0):
            if kind == "int":
                return self.pick([*self.variables["int"], *self.variables["int"], str(self.below(10) - 2)])
            return self.pick([*self.variables["flt"], *self.variables["flt"], "0.5", "-1.25"])
        return self.drawn(EXPRESSIONS[kind], kind)

    def drawn(self, table: Sequence[str], kind: str) -> str:
        """A possible entry of a table, rather one about containers."""
        self.depth += 1
        text = "0.5" if kind == "flt" else "1"
        for _ in range(30):
            template = self.pick(table)
            if not self.possible(template) or self.depth > 2 and HOLE.search(template) and kind == "bool" and "$bool" in template:
                continue
            tested, template = template.startswith("@"), template.lstrip("@")
            bound: dict[str, str] = {}
            text = self.fill(template, bound, kind)
            first = next((bound[h] for h in bound if CAPITALS.get(h) not in (None, "int", "flt")), "")
            if tested and first and self.below(8 if not self.trying else 3):
                text = f"({text} if {first} else {self.expression(kind)})"
            break
        self.depth -= 1
        return text

    # Calls

    def callable(self, result: str) -> list[Helper]:
        """Helpers that may be called here."""
        if self.nesting > 2:
            return []
        later = [h.name for h in self.helpers].index(self.inside) + 1 if self.inside.startswith("h") else 0
        return [h for h in self.helpers[later:] if h.result == result and all(self.variables[k] or k != "node" for _, k in h.params)]

    def call_of(self, helper: Helper) -> str:
        """A call, whose containers have mostly names."""
        args = []
        for name, kind in helper.params:
            if name == "n":
                args.append("n - 1" if self.inside == helper.name else f"{self.pick(self.variables['int'])} % 4")
            elif kind == "int":
                args.append(self.value())
            elif self.variables[kind] and self.below(5):
                args.append(self.pick(self.variables[kind]))
            else:
                args.append(self.new(kind))
        return f"{helper.name}({', '.join(args)})"


@dataclass(frozen=True, slots=True, repr=False)
class SmallProgram(PythonProgram):
    """A small program."""

    def load(self, name: str, more: Mapping[str, Any] | None = None) -> Callable[..., Any]:
        """Execute the text so that its source can be found; gives the plain `f0`."""
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        names = {**namespace(), **(more or {})}
        exec(compile(self.text, name, "exec"), names)
        fn: Callable[..., Any] = names["f0"]
        return fn

    def columns(self, seed: int, lanes: int) -> list[list[Any]]:
        """The arguments of each lane, by parameter."""
        rng = np.random.default_rng(seed)
        columns = PythonProgram.columns(self, seed, lanes)
        for k, (_, kind) in enumerate(self.params):
            if kind == "flt":
                columns[k] = [float(x) for x in rng.uniform(-2, 2, lanes)]
            elif kind == "flist":
                columns[k] = [[float(x) for x in rng.uniform(-2, 2, rng.integers(0, 5))] for _ in range(lanes)]
        return columns


def _needed(parts: Sequence[str]) -> list[str]:
    """The functions that calls from the first reach."""
    found, pending = {0}, [0]
    for k in pending:
        called = {name for name in re.findall(r"\b([gh]\d)\(", parts[k].split(":", 1)[1])}
        more = [j for j in range(1, len(parts)) if j not in found and parts[j][4:6] in called]
        found.update(more)
        pending += more
    return [part for k, part in enumerate(parts) if k in found]


def small_program(tape: bytes, smooth: bool = False) -> SmallProgram:
    """The program that some random bytes stand for."""
    return SmallProgram(*Writer(tape, smooth).program())


def namespace() -> dict[str, Any]:
    """The globals of a program."""
    return {
        "deque": collections.deque, "Counter": collections.Counter, "defaultdict": collections.defaultdict, "heapq": heapq,
        "Cell": Cell, "math": math, "G": 7, "H": -2,
    }  # fmt: skip
