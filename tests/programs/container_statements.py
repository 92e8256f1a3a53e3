"""Statements that change Python's own data, give it second names, raise and catch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.programs.container_expressions import ContainerExpressions
from tests.programs.loops import Lines, indented
from tests.programs.tape import Scope

EXCEPTIONS = (
    "IndexError", "ZeroDivisionError", "KeyError", "ValueError", "TypeError", "Exception", "LookupError",
    "ArithmeticError", "(IndexError, ValueError)", "(KeyError, ZeroDivisionError)", "AttributeError",
)  # fmt: skip
RAISED = ("ValueError", "KeyError", "IndexError", "ZeroDivisionError", "RuntimeError")


@dataclass(frozen=True, slots=True)
class Helper:
    """A function without a decorator: its parameters (name, kind), and the kind of what it returns, or "none"."""

    name: str
    params: tuple[tuple[str, str], ...]
    result: str
    recursive: bool  # then its first parameter is `n`, which calls lower


class ContainerStatements(ContainerExpressions):
    """Draws statements."""

    helpers: tuple[Helper, ...]
    budget = 0
    loops = 0  # around the statement
    breakable = 0  # of them in the same function
    returns: tuple[str, ...]  # kinds of what the function returns
    inside = ""  # the helper that is being written
    frozen: frozenset[str] = frozenset()  # lists that a loop goes over

    # Calls of helpers

    def callable_helpers(self, result: str) -> list[Helper]:
        """Those that the function may call here: those that follow it, and itself if it counts down."""
        following = [h.name for h in self.helpers].index(self.inside) if self.inside else -1
        found = [h for k, h in enumerate(self.helpers) if k > following or (k == following and h.recursive)]
        return [h for h in found if h.result == result and self.calls > 0 and all(map(self.given, h.params))]

    def given(self, parameter: tuple[str, str]) -> bool:
        """Can an argument be made?"""
        return parameter[1] != "node" or self.has("node")

    def may_call(self, result: tuple[str, ...]) -> bool:
        """Is there a helper with this result?"""
        return self.loops < 2 and not self.message and bool(self.callable_helpers(result[0]))

    def call_of(self, result: tuple[str, ...], depth: int) -> str:
        """A call, mostly with containers that have a name, whose changes the caller sees."""
        helper = self.pick(self.callable_helpers(result[0]))
        self.calls -= 1
        args = []
        for name, kind in helper.params:
            if name == "n":
                args.append("n - 1" if helper.name == self.inside else f"{self.int_atom().text} % 4")
            elif kind == "int":
                args.append(self.value(min(depth, 1)))
            elif self.has(kind) and self.below(5):
                args.append(self.name(kind))
            else:
                args.append(self.of_container(kind, 0))
        return f"{helper.name}({', '.join(args)})"

    # Statements

    def statements(self) -> Lines:
        """One or more, as far as the budget goes."""
        lines = self.statement()
        while self.budget > 0 and self.below(3):
            lines += self.statement()
        return lines

    def block(self, header: str, *, loop: bool = False, **more: str) -> Lines:
        """A header with its statements; names of the loop are seen in it alone."""
        outer, self.scope = self.scope, self.scope.inner()
        for name, kind in more.items():
            self.scope.names[kind].append(name)
        self.loops += loop
        self.breakable += loop
        lines = self.statements()
        self.loops -= loop
        self.breakable -= loop
        self.scope = outer
        return [header, *indented(lines)]

    def statement(self) -> Lines:
        """Any statement."""
        self.budget -= 1
        simple: list[Callable[[], Lines]] = [self.assign_int] * 2
        for kind, weight in (("list", 7), ("grid", 4), ("map", 4), ("set", 2), ("opt", 2), ("node", 2)):
            change: Callable[[], Lines] = getattr(self, f"change_{kind}")
            simple += [change] * (weight * bool(self.changeable(kind)))
        if self.may_call(("none",)):
            simple += [lambda: [self.call_of(("none",), 1)]] * 4
        if self.budget <= 0:
            return self.pick(simple)()
        compound: list[Callable[[], Lines]] = [self.if_statement] * 4 + [self.try_statement] * 4
        if self.loops < 2:
            compound += [self.for_range, self.for_range, self.while_statement]
            compound += [self.for_list] * (2 * self.has("list")) + [self.for_other] * 2
        leaving: list[Callable[[], Lines]] = [self.leave] * 2
        return self.pick([*simple, *simple[:8], *compound, *leaving])()

    def changeable(self, kind: str) -> list[str]:
        """Variables of a kind that may be changed here."""
        return [name for name in self.scope.names[kind] if name not in self.frozen]

    def target(self) -> str:
        """An integer to assign."""
        return self.pick(self.scope.assignable["int"])

    def assign_int(self) -> Lines:
        """An integer, or two."""
        name = self.target()
        match self.below(5):
            case 0 | 1:
                return [f"{name} = {self.value(2)}"]
            case 2:
                return [f"{name} = ({name} {self.pick('+-*')} {self.value(1)}) % 29"]
            case 3:
                return [f"{name}, {self.target()} = {self.value(1)}, {self.value(1)}"]
        return [f"{name} += {self.int_atom().text}", f"{name} %= 31"]

    def change_list(self) -> Lines:
        """A list changes, or is another one, or gets a second name; mostly so that nothing raises outside of `try`."""
        xs = self.pick(self.changeable("list"))
        lines = self.changed_list(xs)
        raises = (
            any(part in line for line in lines for part in ("[", "pop", "remove", "del")) and f"{xs} = " not in lines[0]
        )
        if not raises or self.trying or self.chance(3):
            return lines
        return [f"if {xs}:", *indented(lines)]

    def changed_list(self, xs: str) -> Lines:
        """A list changes."""
        k = self.below(28)
        at = self.place(xs)
        if k < 5:
            return [f"{xs}.append({self.value(2)})"]
        if k < 9:
            return [f"{xs}[{at}] = {self.value(2)}"]
        if k < 11:
            return (
                [f"{xs}[{at}] += {self.value(1)}", f"{xs}[{at}] %= 53"]
                if self.below(2)
                else [f"{xs}[{at}] = ({xs}[{self.place(xs)}] + {self.value(1)}) % 53"]
            )
        if k < 13:
            return [f"{self.target()} = {xs}.pop({self.pick(('', '', '0', self.small()))})"]
        if k < 17:
            return [f"{xs} = {self.of_container('list', 1)}"]
        short = self.name("list")
        more = self.pick((f"{short}[:3]", self.comprehension(1), f"[{self.value()}, {self.value()}]"))
        part = f"{self.small()}:{self.pick(('', self.small()))}"
        return [
            (
                f"{xs}.insert({self.small()}, {self.value()})",
                f"{xs}[{at}], {xs}[{self.place(xs)}] = {xs}[{self.place(xs)}], {xs}[{at}]",
                f"{xs}.extend({more})",
                f"{xs} += {self.pick((f'{short}[:2]', f'[{self.value()}]'))}",
                self.pick((f"{xs}.reverse()", f"{xs}.sort()", f"{xs}.sort(reverse=True)", f"{xs}.clear()")),
                f"del {xs}[{self.pick((at, at, f'{self.small()}:', f':{self.small()}', '::2'))}]",
                f"{xs}[{part}] = {self.pick((f'{short}[:2]', f'[{self.value()}]'))}",
                f"{xs}.remove({self.value()})",
                f"{xs} = {self.name('list')}",  # a second name
                f"{xs} = {self.pick(('[]', f'{xs}[::-1]', f'{xs}[1:]'))}",
                f"{xs}.append({xs}[{at}])",
            )[k - 17]
        ]

    def change_grid(self) -> Lines:
        """Likewise a list of lists; now and then a list becomes a row, or a row gets a name."""
        g = self.pick(self.changeable("grid"))
        at = self.place(g)
        match self.below(12):
            case 0 | 1 | 2:
                return [f"{g}[{at}][{self.pick(('0', '-1', self.small()))}] = {self.value(2)}"]
            case 3 | 4:
                return [f"{g}[{at}].append({self.value(2)})"]
            case 5:
                return [f"{g}[{at}][0] = ({g}[{at}][0] + {self.value(1)}) % 41"]
            case 6:
                return [f"{g}.append({self.new_list(1)})"]
            case 7:
                return [f"{self.target()} = {g}[{at}].pop()"]
            case 8:
                return [f"{g} = {self.new_grid(1)}"]
            case 9 if self.has("list"):
                return [self.pick((f"{g}.append({self.name('list')})", f"{g}[{at}] = {self.name('list')}"))]
            case 10 if self.changeable("list"):
                return [f"{self.pick(self.changeable('list'))} = {g}[{at}]" + self.pick(("", "[:]", "[:]"))]
        return [self.pick((f"{g}.pop()", f"{g}.reverse()", f"{g}[{at}] = {self.new_list(0)}", f"del {g}[{at}]"))]

    def change_map(self) -> Lines:
        """Likewise a dict."""
        d = self.pick(self.changeable("map"))
        key = self.small()
        match self.below(10):
            case 0 | 1 | 2:
                return [f"{d}[{key}] = {self.value(2)}"]
            case 3:
                return [f"{d}[{key}] = ({d}.get({key}, 0) + {self.value(1)}) % 37"]
            case 4:
                return self.if_in(key, d, f"{d}[{key}] += 1")
            case 5:
                return self.if_in(key, d, f"del {d}[{key}]")
            case 6:
                return self.if_in(key, d, f"{self.target()} = {d}.pop({key})")
            case 7:
                return [f"{self.target()} = {d}.setdefault({key}, {self.value()})"]
            case 8:
                return [f"{d} = {self.new_map(1)}"]
        return [self.pick((f"{d} = {self.name('map')}", f"{d}.update({self.new_map(0)})", f"{d}.clear()"))]

    def if_in(self, key: str, d: str, line: str) -> Lines:
        """A line that raises without a key."""
        return [line] if self.trying or self.chance(4) else [f"if {key} in {d}:", f"    {line}"]

    def change_set(self) -> Lines:
        """Likewise a set."""
        s = self.pick(self.changeable("set"))
        match self.below(6):
            case 0 | 1:
                return [f"{s}.add({self.value()})"]
            case 2:
                return [f"{s}.{'remove' if self.trying else 'discard'}({self.value()})"]
            case 3:
                return [f"{s} = {self.new_set(1)}"]
            case 4:
                return [f"{s} {self.pick('|&-^')}= {self.pick((self.name('set'), '{1, 2}'))}"]
        return [f"{s} = {self.name('set')}"]

    def change_opt(self) -> Lines:
        """A value that may be None."""
        return [f"{self.pick(self.changeable('opt'))} = {self.optional(2)}"]

    def change_node(self) -> Lines:
        """Another object."""
        return [f"{self.pick(self.changeable('node'))} = {self.node()}"]

    # Control

    def if_statement(self) -> Lines:
        """With or without `else`."""
        lines = self.block(f"if {self.bool(2)}:")
        if self.chance(4):
            lines += self.block(f"elif {self.bool(1)}:")
        return lines + (self.block("else:") if self.below(2) else [])

    def loop(self, header: str, **more: str) -> Lines:
        """A loop, perhaps with an `else`."""
        lines = self.block(header, loop=True, **more)
        return lines + (self.block("else:") if self.chance(4) else [])

    def for_range(self) -> Lines:
        """Over numbers."""
        bounds = self.pick((f"{self.int_atom().text} % 5", "3", f"1, {self.int_atom().text} % 5"))
        if self.has("list") and self.chance(3):
            bounds = f"min(len({self.name('list')}), 4)"
        variable = self.target() if self.chance(4) else self.new_name("i")
        return self.loop(f"for {variable} in range({bounds}):", **{variable: "int"})

    def for_list(self) -> Lines:
        """Over a list, which the body leaves as it is, as far as it has that name."""
        xs, v = self.name("list"), self.new_name("v")
        outer, self.frozen = self.frozen, self.frozen | {xs}
        match self.below(5):
            case 0 | 1:
                lines = self.loop(f"for {v} in {xs}:", **{v: "int"})
            case 2:
                i = self.new_name("i")
                lines = self.loop(f"for {i}, {v} in enumerate({xs}):", **{i: "int", v: "int"})
            case 3:
                u = self.new_name("u")
                lines = self.loop(f"for {u}, {v} in zip({xs}, {self.name('list')}):", **{u: "int", v: "int"})
            case _:
                self.frozen = outer
                lines = self.loop(
                    f"for {v} in {self.pick((f'{xs}[:]', f'list({xs})', f'reversed({xs})'))}:", **{v: "int"}
                )
        self.frozen = outer
        return lines

    def for_other(self) -> Lines:
        """Over rows, keys, items or the elements of a set."""
        kind = self.pick(("grid", "map", "set"))
        if not self.has(kind):
            return self.for_range()
        over, outer = self.name(kind), self.frozen
        self.frozen |= {over}
        v, k = self.new_name("v"), self.new_name("k")
        if kind == "grid":
            lines = self.loop(f"for {v} in {over}:", **{v: "list"})
        elif kind == "map" and self.below(2):
            lines = self.loop(f"for {k}, {v} in {over}.items():", **{k: "int", v: "int"})
        else:
            lines = self.loop(f"for {v} in {self.pick((over, f'sorted({over})'))}:", **{v: "int"})
        self.frozen = outer
        return lines

    def while_statement(self) -> Lines:
        """Counts something down, or takes elements until there is none."""
        if self.changeable("list") and self.below(2):
            xs, v = self.pick(self.changeable("list")), self.new_name("v")
            outer, self.frozen = self.frozen, self.frozen | {xs}
            lines = self.loop(f"while {self.pick((xs, f'len({xs}) > 1'))}:", **{v: "int"})
            self.frozen = outer
            return [lines[0], f"    {v} = {xs}.pop({self.pick(('', '0'))})", *lines[1:]]
        count = self.new_name("w")
        lines = self.loop(f"while {count} > 0{self.pick(('', f' and {self.bool(1)}'))}:")
        return [f"{count} = {2 + self.below(3)}", lines[0], f"    {count} -= 1", *lines[1:]]

    def try_statement(self) -> Lines:
        """A body that may raise, handlers, and what is done in any case."""
        self.budget += 1
        trying, self.trying = self.trying, True
        lines = self.block("try:")
        self.trying = trying
        only_finally = self.chance(6)
        if not only_finally:
            lines += self.block(f"except {self.pick(EXCEPTIONS)}:")
            if self.chance(4):
                lines += self.block(f"except {self.pick(EXCEPTIONS)}:")
                lines += ["    raise"] * self.chance(6)
            if self.chance(5):
                lines += self.block("else:")
        if only_finally or self.chance(4):
            outer, self.breakable = self.breakable, 0
            self.in_finally += 1
            lines += self.block("finally:")
            self.in_finally -= 1
            self.breakable = outer
        return lines

    in_finally = 0

    def leave(self) -> Lines:
        """A way out, mostly on a condition."""
        out = []
        if self.breakable:
            out += ["break", "break", "continue"]
        out += [f"raise {self.pick(RAISED)}({self.pick(('', repr('no')))})"]
        if not self.in_finally:
            out += [self.return_line()] * 2
        way = self.pick(out)
        if way == "continue" and self.in_finally:
            way = "pass"
        if self.chance(8):
            return [f"assert {self.bool(1)}"]
        return [f"if {self.bool(1)}:", f"    {way}"]

    def return_line(self) -> str:
        """A `return` of what the function returns."""
        return f"return {', '.join(map(self.returned, self.returns))}".rstrip() if self.returns else "return"

    def returned(self, kind: str) -> str:
        """A part of a result."""
        if kind == "int":
            return self.value(1)
        if self.has(kind) and self.below(4):
            return self.name(kind)
        return self.of_container(kind, 1)

    def start(
        self, names: dict[str, list[str]], budget: int, calls: int, returns: tuple[str, ...], inside: str
    ) -> None:
        """Begin a function."""
        self.scope = Scope(names, {"int": list(names["int"])})
        self.budget, self.calls, self.returns, self.inside = budget, calls, returns, inside
        self.loops = self.breakable = self.fresh = self.in_finally = 0
        self.steps, self.frozen, self.trying = [], frozenset(), False
