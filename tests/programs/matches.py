"""The `match` statements of random programs."""

from __future__ import annotations

from tests.programs.loops import Lines, Loops, indented


class Matches(Loops):
    """Draws `match` with its cases."""

    captured: list[str]  # what the pattern that is being drawn binds so far

    def matched(self) -> Lines:
        """On a number, a tuple or a dict: a few cases, and now and then one for all the rest."""
        numbers, triples = (self.divided, self.number), (self.three, self.triple)
        forms = [numbers, numbers, numbers, triples, triples, (self.two, self.couple), (self.keyed, self.mapping)]
        subject, pattern = self.pick(forms)
        lines = [f"match {subject()}:"]
        for _ in range(1 + self.below(3)):
            self.captured = []
            text = pattern()
            needs_guard = text.isidentifier()  # it would make the cases after it unreachable, which Python refuses
            lines += self.case(text, guarded=needs_guard or self.chance(3))
        if self.below(2):
            self.captured = []
            whole = self.capture() if pattern == self.number and self.chance(3) else "_"
            lines += self.case(whole, guarded=False)
        return lines

    def case(self, pattern: str, *, guarded: bool) -> Lines:
        """One case, which alone knows the new names of its pattern."""
        outer, self.scope = self.scope, self.scope.inner()
        self.scope.names["int"] += [name for name in self.captured if name not in self.scope.names["int"]]
        guard = f" if {self.condition(1)}" if guarded else ""
        lines = self.block(f"case {pattern}{guard}:")
        self.scope = outer
        return indented(lines)

    # What is matched

    def divided(self) -> str:
        """A number, mostly a small one."""
        return f"{self.int(2).text} % {2 + self.below(4)}" if self.below(4) else self.of_kind("int")

    def three(self) -> str:
        """A tuple."""
        return f"{self.divided()}, {self.divided()}, {self.of_kind('int', 1)}"

    def two(self) -> str:
        """A variable or a display."""
        return self.of_kind("pair", 1) if self.below(3) else self.pick([*self.scope.names["pair"], "(x, y)"])

    def keyed(self) -> str:
        """A dict."""
        return self.pick(self.scope.names["dict"]) if self.scope.names["dict"] else self.dict(1)

    # Patterns

    def capture(self) -> str:
        """A variable that exists, or a new one."""
        free = [name for name in self.scope.assignable["int"] if name not in self.captured]
        name = self.pick(free) if free and self.below(2) else self.new_name("n")
        self.captured.append(name)
        return name

    def literal(self) -> str:
        """A number."""
        return str(self.below(5) - self.chance(8))

    def number(self) -> str:
        """For a number."""
        match self.below(7):
            case 0 | 1:
                return self.literal()
            case 2:
                return f"{self.literal()} | {self.literal()}"
            case 3:
                return f"({self.literal()} | {self.literal()}) as {self.capture()}"
            case 4:
                return self.pick(("None", "'s'", "0.0", "[_]"))
        return self.capture()

    def part(self) -> str:
        """For a number inside another pattern."""
        return self.pick((self.literal(), "_")) if self.below(3) else self.number()

    def triple(self) -> str:
        """For three numbers, or fewer, which never match."""
        match self.below(5):
            case 0:
                return f"({self.part()}, {self.part()}, {self.part()})"
            case 1:
                return f"[{self.part()}, *_]"
            case 2:
                first, rest = self.part(), self.new_name("r")
                self.captured += [f"{rest}[0]", f"{rest}[1]"]
                return f"{first}, *{rest}"
            case 3:
                name = self.capture()
                return f"({name}, {self.literal()}, _) | (_, {name}, {self.literal()}) | (_, _, {name})"
        return f"({self.part()}, {self.part()})"

    def couple(self) -> str:
        """For a pair."""
        if self.chance(3):
            name = self.capture()
            return f"({name}, {self.literal()}) | ({self.literal()}, {name})"
        return f"({self.part()}, {self.part()})"

    def mapping(self) -> str:
        """For a dict: a key that it has, both, or one that it lacks."""
        match self.below(4):
            case 0:
                return f"{{'s': {self.part()}}}"
            case 1:
                return f"{{'n': {self.part()}, 's': {self.part()}}}"
            case 2:
                first, rest = self.part(), self.new_name("r")
                self.captured.append(f"{rest}['n']")
                return f"{{'s': {first}, **{rest}}}"
        return self.pick(("{'z': 1}", "(_, _)"))
