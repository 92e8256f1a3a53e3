"""The statements of random programs: every loop has a counter of its own or a fixed length, so that all of them end."""

from __future__ import annotations

from collections.abc import Callable

from tests.programs.expressions import Expressions, Signature

Lines = list[str]
DEEPEST = 4  # nested blocks


def indented(lines: Lines) -> Lines:
    """One level further in."""
    return [f"    {line}" for line in lines]


class Statements(Expressions):
    """Draws the bodies of functions."""

    def start(self, signature: Signature, budget: int) -> None:
        """Before a function."""
        self.signature, self.budget, self.style, self.current = signature, budget, signature.style, signature.name
        self.calls = 0 if signature.style == "leaf" else 2 + self.below(3)
        self.fresh = 0
        self.depth = self.loop_depth = 0

    def new_name(self, stem: str) -> str:
        """A name that this function has not yet."""
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def result(self, depth: int = 2) -> str:
        """What this function returns."""
        parts = [self.of_kind(kind, depth) for kind in self.signature.result]
        if self.signature.result[0] == "int" and self.below(2):
            parts[0] = self.checksum()
        return ", ".join(parts)

    def checksum(self) -> str:
        """A number that depends on all variables, which are needed to the end then."""
        terms = [f"{k + 2} * {name}" for k, name in enumerate(self.scope.names["int"])]
        terms += [f"jnp.sum({name})" for name in self.scope.names["array"]]
        terms += [f"(40 if {name} else 0)" for name in self.scope.names["bool"]]
        terms += [f"{name}[1]" for name in self.scope.names["pair"]]
        return f"({' + '.join(terms)}) % 97"

    def block(self, header: str, *, loop: bool = False) -> Lines:
        """A header with its statements; names made inside are not known after it."""
        outer, self.scope = self.scope, self.scope.inner()
        self.depth += 1
        self.loop_depth += loop
        lines = self.some_statements()
        if loop and self.size > 5 and self.chance(2):
            lines += self.store()
        if self.chance(6):
            lines += self.leave()
        self.loop_depth -= loop
        self.depth -= 1
        self.scope = outer
        return [header, *indented(lines or ["pass"])]

    def some_statements(self) -> Lines:
        """A few."""
        lines = self.statement()
        while self.budget > 0 and self.below(3):
            lines += self.statement()
        return lines

    def statement(self) -> Lines:
        """One statement, with what it contains, or nothing: so shrinking can drop one and keep what follows."""
        self.budget -= 1
        dropped = self.below(16) == 0
        outer = self.scope.inner()
        lines = self.form()()
        if dropped:
            self.scope = outer
        return [] if dropped else lines

    def form(self) -> Callable[[], Lines]:
        """What kind of statement comes."""
        assignments = [self.assign] * 4 + [self.from_itself] * 2 + [self.store] * 2
        simple = [*assignments, self.unpack, self.swap, self.augment, self.several]
        simple += [self.annotated, self.pair, self.local, self.definition]
        if self.budget <= 0 or self.depth >= DEEPEST:
            return self.pick(simple)
        loops = [self.for_range] * 4 + [self.for_rows] * 3 + [self.while_loop] * 4
        leaves = [self.guarded_leave] * (4 if self.loop_depth else 2)
        calls = [self.call_statement] * (0 if self.style == "leaf" else 6)
        return self.pick([*simple, *[self.branch] * 3, *loops, *leaves, *calls])

    # Assignments

    def assign(self) -> Lines:
        """A variable that exists."""
        kind = self.pick([k for k in ("int", "int", "float", "bool", "array") if self.scope.assignable[k]])
        return [f"{self.pick(self.scope.assignable[kind])} = {self.of_kind(kind)}"]

    def unpack(self) -> Lines:
        """A pattern, flat or nested; from a display or a tuple."""
        ints = self.scope.assignable["int"]
        a, b, c = self.pick(ints), self.pick(ints), self.pick(ints)
        match self.below(3):
            case 0:
                return [f"{a}, {b} = {self.of_kind('int')}, {self.of_kind('int')}"]
            case 1 if self.scope.names["pair"]:
                return [f"{a}, {b} = {self.pick(self.scope.names['pair'])}"]
        return [f"({a}, {b}), {c} = ({self.of_kind('int', 1)}, {self.of_kind('int', 1)}), {self.of_kind('int', 1)}"]

    def from_itself(self) -> Lines:
        """A variable whose new value is decided in several steps and reads the old one on the way."""
        if self.scope.assignable["bool"] and self.chance(3):
            name = self.pick(self.scope.assignable["bool"])
            forms = (f"{self.bool(1)} and not {name}", f"{self.bool(0)} or ({self.bool(0)} and {name})")
            return [f"{name} = {self.pick(forms)}"]
        name, a = self.pick(self.scope.assignable["int"]), self.of_kind("int", 1)
        new = f"({name} + {self.int(1).text}) % 97"
        forms = (f"{a} and {new}", f"{new} if {self.bool(1)} else {name}", f"{a} or {new}", f"{name} and {new}")
        return [f"{name} = {self.pick(forms)}"]

    def store(self) -> Lines:
        """One element of an array, which a large array changes in place."""
        if not self.scope.assignable["array"]:
            return self.assign()
        name = self.pick(self.scope.assignable["array"])
        how = self.pick(("set", "set", "max", "min"))
        return [f"{name} = {name}.at[{self.index(1)}].{how}({self.of_kind('int', 1)})"]

    def swap(self) -> Lines:
        """Two variables exchanged, or rotated."""
        a, b = (self.pick(self.scope.assignable["int"]) for _ in "ab")
        return [f"{a}, {b} = {b}, {self.of_kind('int', 1) if self.chance(3) else a}"]

    def augment(self) -> Lines:
        """`+=` and its like, and back into range."""
        name = self.pick(self.scope.assignable["int"])
        return [f"{name} {self.pick(('+=', '-=', '*='))} {self.stored(self.int(1))}", f"{name} %= {self.pick((89, 7))}"]

    def several(self) -> Lines:
        """Two targets."""
        a, b = (self.pick(self.scope.assignable["int"]) for _ in "ab")
        return [f"{a} = {b} = {self.of_kind('int')}"]

    def annotated(self) -> Lines:
        """With an annotation, which means nothing here."""
        return [f"{self.pick(self.scope.assignable['int'])}: int = {self.of_kind('int')}"]

    def pair(self) -> Lines:
        """A tuple in one variable."""
        if not self.scope.assignable["pair"]:
            return self.assign()
        return [f"{self.pick(self.scope.assignable['pair'])} = {self.of_kind('pair')}"]

    def local(self) -> Lines:
        """A variable that only the rest of this block knows."""
        name = self.new_name("w")
        lines = [f"{name} = {self.of_kind('int')}"]
        self.scope.names["int"].append(name)
        self.scope.assignable["int"].append(name)
        return lines

    def definition(self) -> Lines:
        """A nested function or lambda, which sees the variables as they are when it is called."""
        name = self.new_name("h")
        outer, self.scope = self.scope, self.scope.inner()
        self.scope.names["int"] += ["x", "k"]
        self.pure += 1
        body = self.int(2).text
        inner = self.stored(self.int(1))
        self.pure -= 1
        self.scope = outer
        form = self.below(3)
        self.scope.helpers.append(name)
        if form == 0:
            return [f"{name} = lambda x, k=2: {body} % 97"]
        if form == 1:
            return [f"def {name}(x, k=2):", f"    return {body} % 97"]
        return [f"def {name}(x, k=2):", f"    x = {inner}", f"    return {body} % 97"]

    # Control flow

    def branch(self) -> Lines:
        """`if`, with or without more."""
        lines = self.block(f"if {self.condition()}:")
        if self.chance(4):
            lines += self.block(f"elif {self.condition()}:")
        if self.below(2):
            lines += self.block("else:")
        return lines

    def target(self) -> str:
        """A loop variable: a variable that is used for other things too, or a new one."""
        return self.pick(self.scope.assignable["int"]) if self.below(2) else "i"

    def for_range(self) -> Lines:
        """Over numbers; the bounds may be the loop variable itself."""
        name = self.target()
        text = self.int(1).text
        match self.below(5):
            case 0 | 1:
                header = f"range({text} % {2 + self.below(3)})"
            case 2:
                header = f"range({self.below(3) - 1}, {text} % 4)"
            case 3:
                header = f"range({text} % 3, {-1 - self.below(3)}, -{1 + self.below(2)})"
            case _:
                header = f"range({1 + self.below(3)})"
        return self.loop(f"for {name} in {header}:", [name])

    def for_rows(self) -> Lines:
        """Over an array, its rows, or with a count beside it."""
        array, name = self.array_atom(), self.target()
        array = array if self.size < 5 else f"{array}[2:5]"
        match self.below(4):
            case 0 | 1:
                return self.loop(f"for {name} in {array}:", [name])
            case 2:
                start = self.pick(("", ", 1", f", {self.pick(self.scope.names['int'])}"))
                return self.loop(f"for j, {name} in enumerate({array}{start}):", ["j", name])
        lines = self.loop(f"for row in jnp.stack([{self.array_atom()}, {self.stored(self.array(1))}]):", [], ["row"])
        return lines

    def loop(self, header: str, ints: list[str], arrays: list[str] | None = None) -> Lines:
        """A `for` loop with its body, and now and then an `else`."""
        outer, self.scope = self.scope, self.scope.inner()
        self.scope.names["int"] += [n for n in ints if n not in self.scope.names["int"]]
        self.scope.names["array"] += arrays or []
        lines = self.block(header, loop=True)
        self.scope = outer
        return lines + (self.block("else:") if self.chance(4) else [])

    def while_loop(self) -> Lines:
        """Counts down something that nothing else assigns."""
        counter, times = self.new_name("k"), f"{1 + self.below(3)}"
        if self.chance(2):
            times = f"{self.int(1).text} % 4"
        form = self.below(4)
        self.loop_depth += 1
        more = self.condition()
        self.loop_depth -= 1
        outer, self.scope = self.scope, self.scope.inner()
        self.scope.names["int"].append(counter)
        header = ("while True:", f"while {counter} > 0:", f"while {counter} > 0 and {more}:", f"while {counter}:")[form]
        lines = self.block(header, loop=True)
        self.scope = outer
        step = [f"{counter} -= 1"]
        if form == 0:
            step += [f"if {counter} < 0:", "    break"]
        lines = [lines[0], *indented(step), *lines[1:]]
        return [f"{counter} = {times}", *lines, *(self.block("else:") if self.chance(4) else [])]

    def leave(self) -> Lines:
        """A jump as the last statement of a block."""
        jumps = ["break", "continue"] if self.loop_depth else []
        return [self.pick([*jumps, f"return {self.result(1)}"])]

    def guarded_leave(self) -> Lines:
        """`if c: break`, `continue` or `return`."""
        return [f"if {self.condition()}:", *indented(self.leave())]

    def call_statement(self) -> Lines:
        """A call of a function whatever it returns; its parts are unpacked or dropped."""
        enough = self.calls >= (2 if self.loop_depth else 1) and self.loop_depth < 2
        if not enough or not self.functions:
            return self.assign()
        f = self.callee(self.functions)
        if not all(self.scope.assignable[kind] for kind in f.result):
            return self.assign()
        text = self.raw_call(f, 1)
        targets = ", ".join(self.pick(self.scope.assignable[kind]) for kind in f.result)
        forms = [f"{targets} = {text}"] * 3 + [text]
        if f.result == self.signature.result:
            forms += [f"return {text}"] * 2
        elif len(f.result) == 2:
            forms.append(f"{self.pick(self.scope.assignable[f.result[1]])} = {text}[1]")
        line = self.pick(forms)
        return [line] if self.style == "base" and not line.startswith("return") else ["if fuel > 0:", f"    {line}"]
