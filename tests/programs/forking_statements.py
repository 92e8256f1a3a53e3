"""Statements of random programs whose calls are independent: branches, loops, early returns, failures."""

from __future__ import annotations

from collections.abc import Callable

from tests.programs.forking_expressions import ForkingExpressions
from tests.programs.loops import Lines, indented

RAISED = ("ValueError", "KeyError", "IndexError", "RuntimeError")
EXCEPTIONS = ("ValueError", "IndexError", "(ValueError, IndexError)", "Exception", "AssertionError")


class ForkingStatements(ForkingExpressions):
    """Draws statements of one program."""

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
        return [self.pick((f"{xs}.append({self.int_()} % 19)", f"{xs}.append(({self.some('int')}) % 19)",
                           f"if {xs}:\n    {xs}[0] = {self.int_()}"))]  # fmt: skip
