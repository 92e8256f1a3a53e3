"""Expressions over Python's own data: lists, lists of lists, dicts, sets, values that may be None, objects.

Integers are those of `Expressions`, less what needs `jax.numpy`: programs are such as somebody writes who knows Python
only. Some expressions change what they read (`xs.pop()`), and some raise (`xs[a]`, `a // b`).
"""

from __future__ import annotations

from collections.abc import Callable

from tests.programs.expressions import Expressions
from tests.programs.tape import SMALL, Expr

CONTAINERS = ("list", "grid", "map", "set", "opt", "node")
KINDS = ("int", "bool", "float", "array", "pair", "dict", *CONTAINERS)
SUM = SMALL * 256  # what the sum of a list stays below


class ContainerExpressions(Expressions):
    """Draws expressions."""

    trying = False  # in the body of a `try`
    steps: list[str]  # nested functions that can be called here, from an integer to an integer

    def has(self, kind: str) -> bool:
        """Is there a variable of this kind?"""
        return bool(self.scope.names[kind])

    def name(self, kind: str) -> str:
        """A variable of this kind."""
        return self.pick(self.scope.names[kind])

    def small(self) -> str:
        """An integer as others write it: a variable or a literal, or a short sum."""
        a = self.int_atom().text
        return a if self.below(3) else f"{a} {self.pick('+-')} {1 + self.below(3)}"

    def value(self, depth: int = 1) -> str:
        """An integer that a container may hold."""
        return self.stored(self.int(depth))

    def int(self, depth: int) -> Expr:
        """An integer."""
        if depth <= 0 or self.below(3) == 0:
            return self.int_atom()
        forms: list[Callable[[int], Expr]] = [self.int_arithmetic] * 2 + [self.int_by_literal, self.int_extreme]
        forms += [self.int_quotient, self.int_unary]
        for kind, form, weight in (
            ("list", self.int_of_list, 4), ("grid", self.int_of_grid, 3), ("map", self.int_of_map, 3),
            ("set", self.int_of_set, 2), ("opt", self.int_of_optional, 2), ("node", self.int_of_node, 3),
        ):  # fmt: skip
            forms += [form] * (weight * self.has(kind))
        if not self.pure:
            forms += [self.int_ternary, self.int_bool_op, self.int_walrus, *[self.int_taken] * 2]
        if not self.pure or self.chance(3):
            forms += [self.int_of_step] * (3 * bool(self.steps))
            forms += [self.int_of_call] * (4 * self.may_call(("int",)))
        return self.limited(self.pick(forms)(depth - 1))

    def int_extreme(self, depth: int) -> Expr:
        """The larger or smaller of two."""
        a, b = self.int(depth), self.int(depth)
        return Expr(f"{self.pick(('min', 'max'))}({a.text}, {b.text})", max(a.bound, b.bound))

    def int_quotient(self, depth: int) -> Expr:
        """Division: by what may be zero only where that raises, in the body of a `try`."""
        a, b = self.int(depth), self.int_atom().text
        divisor = b if self.trying else f"({b} or {1 + self.below(5)})"
        return Expr(f"({a.text} {self.pick(('//', '%'))} {divisor})", max(a.bound, SMALL))

    def place(self, items: str) -> str:
        """An index, mostly of an element that there is."""
        match self.below(8):
            case 0 | 1 | 2:
                return f"({self.small()}) % {self.length(items)}"
            case 3:
                return "-1"
            case 4:
                return "0"
            case 5:
                return str(self.below(2))
        return self.small() if self.trying or self.chance(2) else f"{self.small()} % 3"

    def length(self, items: str) -> str:
        """The length of something as a divisor."""
        return f"len({items})" if self.trying else f"max(len({items}), 1)"

    def int_of_list(self, depth: int) -> Expr:
        """What a list says; mostly tested first, where nothing catches what it raises."""
        xs = self.name("list")
        e = self.read_of_list(xs, depth)
        raises = any(part in e.text for part in (f"{xs}[", "max(", "min(", ".index("))
        if not raises or self.trying or self.pure or self.chance(4):
            return e
        return Expr(f"({e.text} if {xs} else {self.value(0)})", max(e.bound, SMALL))

    def read_of_list(self, xs: str, depth: int) -> Expr:
        """What a list says."""
        match self.below(9):
            case 0 | 1 | 2 | 3:
                return Expr(f"{xs}[{self.place(xs)}]")
            case 4:
                return Expr(f"len({xs})", 256)
            case 5:
                return Expr(f"sum({self.some_of(xs)})", SUM)
            case 6:
                return Expr(f"{self.pick(('max', 'min'))}({self.some_of(xs)})")
            case 7:
                return Expr(f"{xs}.{'index' if self.trying else 'count'}({self.value(depth)})", 256)
        return Expr(f"{self.pick(('sum', 'len'))}({self.comprehension(depth)})", SUM)

    def some_of(self, xs: str) -> str:
        """A list or a slice of it."""
        match self.below(6):
            case 0:
                return f"{xs}[{self.small()}:]"
            case 1:
                return f"{xs}[:{self.small()}]"
            case 2:
                return f"{xs}[{self.pick(('::-1', '1::2', '-2:', '::-2', ':-1'))}]"
        return xs

    def int_of_grid(self, depth: int) -> Expr:
        """What a list of lists says."""
        g = self.name("grid")
        match self.below(6):
            case 0 | 1 | 2:
                i = self.place(g)
                return Expr(f"{g}[{i}][{self.small() if self.chance(3) else self.pick(('0', '-1'))}]")
            case 3:
                return Expr(f"len({g}[{self.place(g)}])", 256)
            case 4:
                return Expr(f"sum([sum(r) for r in {g}])", SUM)
        return Expr(f"len({g})", 256)

    def int_of_map(self, depth: int) -> Expr:
        """What a dict says."""
        d = self.name("map")
        match self.below(7):
            case 0 if self.trying:
                return Expr(f"{d}[{self.small()}]")
            case 0 | 1:
                return Expr(f"({d}[{(key := self.small())}] if {key} in {d} else {self.value(depth)})")
            case 2 | 3:
                return Expr(f"{d}.get({self.small()}, {self.value(depth)})")
            case 4:
                return Expr(f"sum({d}.values())", SUM)
            case 5:
                return Expr(f"sum([k * v % 13 for k, v in {d}.items()])", SUM)
        return Expr(f"len({d})", 256)

    def int_of_set(self, depth: int) -> Expr:
        """What a set says."""
        s = self.name("set")
        few = (f"max({s})", f"sorted({s})[0]") if self.trying else (f"max({s}, default=2)", f"sum(sorted({s})[:2])")
        return Expr(self.pick((f"len({s})", f"sum({s})", *few)), SUM)

    def int_of_optional(self, depth: int) -> Expr:
        """A value that may be None, or another in its place; now and then without a test."""
        o = self.name("opt")
        match self.below(6):
            case 0 | 1 | 2:
                return Expr(f"({o} if {o} is not None else {self.value(depth)})")
            case 3:
                return Expr(f"({self.value(depth)} if {o} is None else {o})")
            case 4:
                return Expr(f"({o} or {self.value(depth)})")
        return Expr(f"({o} + 1)" if self.chance(4) else f"(0 if {o} is None else {o} + 1)", SMALL + 1)

    def int_of_node(self, depth: int) -> Expr:
        """A field of an object, which may be None."""
        r = self.name("node")
        bare = f"{r}.word" if self.trying or self.chance(4) else f"(0 if {r} is None else {r}.word)"
        return Expr(self.pick((f"({r}.word if {r} is not None else 0)", f"({r}.word if {r} else 1)", bare)))

    def int_taken(self, depth: int) -> Expr:
        """What a container gives and loses."""
        if self.has("list") and self.below(3):
            xs = self.name("list")
            if self.trying or self.chance(3):
                return Expr(f"{xs}.pop({self.pick(('', '', '0', '-1', self.small()))})")
            return Expr(f"({xs}.pop({self.pick(('', '0', '-1'))}) if {xs} else {self.value(depth)})")
        if self.has("map"):
            return Expr(f"{self.name('map')}.pop({self.small()}, {self.value(depth)})")
        if self.has("grid"):
            g = self.name("grid")
            return Expr(f"{g}[{self.place(g)}].pop()")
        return self.int_atom()

    def int_of_step(self, depth: int) -> Expr:
        """A call of a nested function."""
        return Expr(f"{self.pick(self.steps)}({self.value(depth)})")

    def int_of_call(self, depth: int) -> Expr:
        """A call of a helper."""
        return Expr(self.call_of(("int",), depth))

    def int_atom(self) -> Expr:
        """A variable or a literal; globals seldom, as what they decide is known while compiling."""
        if self.chance(12):
            return super().int_atom()
        k = self.below(8)
        return Expr(self.name("int")) if k < 6 and self.has("int") else Expr(str(self.below(10) - 2), 9)

    # Conditions

    def bool(self, depth: int) -> str:
        """A condition."""
        k = self.below(12)
        if self.pure or depth <= 0 or k < 3:
            return self.comparison()
        if k < 6:
            return f"{self.int(depth).text} {self.pick(('<', '>=', '!=', '=='))} {self.int_atom().text}"
        if k < 8:
            return self.combined(self.below(4), depth - 1)
        return self.about_containers(depth)

    def about_containers(self, depth: int) -> str:
        """A condition on what is no integer."""
        held = [kind for kind in CONTAINERS if self.has(kind)]
        if not held:
            return self.comparison()
        kind = self.pick(held)
        name = self.name(kind)
        match kind:
            case "opt":
                return f"{name} is {self.pick(('', 'not '))}None"
            case "node":
                other = self.name(kind)
                return self.pick((f"{name} is None", f"{name} is not None", f"{name} is {other}", f"not {name}"))
            case "list" | "grid" if self.chance(3):
                return f"{name} {self.pick(('==', '!='))} {self.name(kind)}"
            case "list" | "map" | "set" if self.below(2):
                return f"{self.value(depth - 1)} {self.pick(('in', 'not in'))} {name}"
        return self.pick((name, f"not {name}", f"len({name}) > {self.below(4)}"))

    # Containers

    def comprehension(self, depth: int) -> str:
        """A list made of another, or of numbers that the lane bounds."""
        test = f" if {self.pick(('v % 2 == 0', 'v > 1', f'v != {self.int_atom().text}'))}" if self.chance(2) else ""
        over = self.pick(("list", "range", "range", "grid", "map", "set", "zip"))
        if over in CONTAINERS and not self.has(over) or over == "zip" and not self.has("list"):
            over = "range"
        self.pure += 1
        element = self.pick(("v", "v * 2 % 31", f"(v + {self.value(depth - 1)}) % 23"))
        self.pure -= 1
        match over:
            case "list":
                return f"[{element} for v in {self.some_of(self.name('list'))}{test}]"
            case "grid":
                return f"[{element} for r in {self.name('grid')} for v in r{test}]"
            case "map":
                return f"[{element} for v in {self.name('map')}{self.pick(('', '.values()'))}{test}]"
            case "set":
                return f"[{element} for v in sorted({self.name('set')}){test}]"
            case "zip":
                return f"[{element} for u, v in zip({self.name('list')}, {self.name('list')}){test}]"
        bounds = self.pick((f"{self.int_atom().text} % 6", "3", f"1, {self.int_atom().text} % 7"))
        return f"[{element} for v in range({bounds}){test}]"

    def of_container(self, kind: str, depth: int = 1) -> str:
        """A new object of this kind."""
        match kind:
            case "list":
                return self.new_list(depth)
            case "grid":
                return self.new_grid(depth)
            case "map":
                return self.new_map(depth)
            case "set":
                return self.new_set(depth)
            case "opt":
                return self.optional(depth)
            case "node":
                return self.node()
        return self.value(depth)

    def new_list(self, depth: int) -> str:
        """A list that has no other name."""
        k = self.below(14)
        match k:
            case 0 | 1:
                return f"[{', '.join(self.value(depth - 1) for _ in range(1 + self.below(4)))}]"
            case 2 | 3 | 4:
                return self.comprehension(depth)
            case 5:
                return f"[{self.value(0)}] * ({self.int_atom().text} % 6)"
            case 6:
                return f"list(range({self.int_atom().text} % 6))"
        if k == 13 and self.may_call(("list",)):
            return self.call_of(("list",), depth)
        if not self.has("list"):
            return "[]"
        xs, ys = self.name("list"), self.name("list")
        copies = (f"{xs}[:]", f"list({xs})", f"{xs}.copy()", f"sorted({xs})", f"list(reversed({xs}))")
        return self.pick((f"{xs} + {ys}[:3]", f"{xs}[{self.small()}:]", f"[{self.value(0)}] + {xs}", *copies))

    def new_grid(self, depth: int) -> str:
        """A list of lists."""
        match self.below(5):
            case 0:
                return f"[[{self.value(0)}] * {1 + self.below(3)} for _ in range({1 + self.below(3)})]"
            case 1:
                return f"[[{self.value(0)}] * ({self.int_atom().text} % 4) for _ in range({self.int_atom().text} % 4)]"
            case 2:
                return f"[{', '.join(self.new_list(depth - 1) for _ in range(1 + self.below(2)))}]"
            case 3 if self.has("grid"):
                return f"[r[:] for r in {self.name('grid')}]"
        return f"[[] for _ in range({1 + self.below(4)})]"

    def new_map(self, depth: int) -> str:
        """A dict from integers to integers."""
        match self.below(5):
            case 0 | 1:
                return f"{{{', '.join(f'{self.small()}: {self.value(0)}' for _ in range(self.below(3)))}}}"
            case 2:
                return f"{{i: i * 3 % 7 for i in range({self.int_atom().text} % 5)}}"
            case 3 if self.has("list"):
                return f"{{v: u for u, v in enumerate({self.name('list')})}}"
        return f"dict({self.name('map')})" if self.has("map") else "{}"

    def new_set(self, depth: int) -> str:
        """A set of integers."""
        match self.below(5):
            case 0:
                return f"{{{self.value(0)}, {self.value(0)}}}"
            case 1 if self.has("list"):
                return f"set({self.name('list')})"
            case 2 if self.has("set"):
                return f"{self.name('set')} {self.pick('|&-^')} {self.name('set')}"
            case 3:
                return f"{{i % 3 for i in range({self.int_atom().text} % 5)}}"
        return "set()"

    def optional(self, depth: int) -> str:
        """A value that may be None."""
        match self.below(6):
            case 0:
                return "None"
            case 1:
                return f"(None if {self.bool(depth)} else {self.value(depth)})"
            case 2 if self.has("map"):
                return f"{self.name('map')}.get({self.small()})"
            case 3 if self.may_call(("opt",)):
                return self.call_of(("opt",), depth)
        return self.value(depth)

    def node(self) -> str:
        """An object that another refers to."""
        r = self.name("node")
        safe = (
            f"({r}.left if {r} is not None else {self.name('node')})",
            f"({r} and {r}.right)",
            f"{self.name('node')}",
        )
        return self.pick((*safe, f"{r}.{self.pick(('left', 'right'))}") if self.trying else safe)
