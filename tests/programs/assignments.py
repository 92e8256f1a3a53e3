"""The assignments of random programs, and what else is one line."""

from __future__ import annotations

from tests.programs.expressions import Expressions

Lines = list[str]


class Assignments(Expressions):
    """Draws statements that hold no others."""

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

    def starred(self) -> Lines:
        """A list of what is left over, with its first and last element read at once."""
        a, b = (self.pick(self.scope.assignable["int"]) for _ in "ab")
        rest = self.new_name("r")
        values = ", ".join(self.of_kind("int", 1) for _ in range(3 + self.below(2)))
        forms = [f"{a}, *{rest} = {values}", f"{a}, *{rest}, {b} = {values}", f"*{rest}, {a} = {values}"]
        if self.scope.names["pair"]:
            forms.append(f"{a}, *{rest} = {self.pick(self.scope.names['pair'])}")
        line = self.pick([*forms, f"*{rest}, {a}, {b} = {self.array_atom()}[:3]"])
        self.scope.names["int"] += [f"{rest}[0]", f"{rest}[-1]"]
        return [line]

    def dictionary(self) -> Lines:
        """A dict in one variable."""
        if not self.scope.assignable["dict"]:
            return self.assign()
        return [f"{self.pick(self.scope.assignable['dict'])} = {self.of_kind('dict')}"]

    def grown(self) -> Lines:
        """A list that grows in a loop over a display."""
        name, item = self.new_name("g"), self.new_name("n")
        items = ", ".join(self.of_kind("int", 1) for _ in range(2 + self.below(2)))
        outer, self.scope = self.scope, self.scope.inner()
        self.scope.names["int"].append(item)
        new = self.of_kind("int", 1)
        self.scope = outer
        self.scope.names["int"] += [f"{name}[0]", f"{name}[-1]"]
        return [f"{name} = []", f"for {item} in ({items}):", f"    {name} = [*{name}, {new}]"]

    # What lanes print, and how they fail

    def text(self) -> str:
        """Something formatted; its first part tells the place."""
        self.message = True
        a, b = self.of_kind("int", 1), self.stored(self.int_atom())
        self.message = False
        place = self.new_name("")
        return self.pick((f'"at {place}"', f'f"{place}: {{{a}}} {{{b}:03d}}"', f'f"{place}: {{{a}}}"'))

    def rare(self) -> str:
        """A condition that is seldom true. It is not known while compiling: what fails on every path is refused."""
        return f"({self.int(1).text} + fuel) % {self.below(7) + 5} == {self.below(5)}"

    def printed(self) -> Lines:
        """Any numbers."""
        text = self.text()
        self.message = True
        number = self.of_kind("int", 1)
        self.message = False
        return [f"print({text}, {number})"]

    def raised(self) -> str:
        """An exception, with and without a message."""
        name = self.pick(("ValueError", "RuntimeError"))
        return f"raise {name}({self.text()})" if self.below(4) else f"raise {name}"

    def failed(self) -> Lines:
        """An exception in few lanes."""
        return [f"if {self.rare()}:", f"    {self.raised()}"]

    def asserted(self) -> Lines:
        """A condition that most lanes meet."""
        rare = self.rare()
        claim = self.pick((f"not ({rare})", rare.replace("==", "!=")))
        claim = claim if self.below(3) else f"({claim} or {self.bool(2)})"
        if self.may_call(("int",)) and self.below(2):
            claim = f"({self.call_of(('int',), 1)} != {self.below(9)} or {claim})"
        return [f"assert {claim}, {self.text()}" if self.below(3) else f"assert {claim}"]
