"""The loops of random programs: each has a counter of its own or a fixed length, so that all of them end."""

from __future__ import annotations

from abc import abstractmethod

from tests.programs.assignments import Assignments, Lines


def indented(lines: Lines) -> Lines:
    """One level further in."""
    return [f"    {line}" for line in lines]


class Loops(Assignments):
    """Draws loops."""

    unrolled = 0  # loops around whose bodies are copied

    @abstractmethod
    def block(self, header: str, *, loop: bool = False) -> Lines:
        """A header with its statements."""

    def target(self) -> str:
        """A loop variable: a variable that is used for other things too, or a new one."""
        return self.pick(self.scope.assignable["int"]) if self.below(2) else "i"

    def for_range(self) -> Lines:
        """Over numbers; the bounds may be the loop variable itself."""
        name = self.target()
        text = self.int(1).text
        match self.below(6):
            case 0 | 1:
                header = f"range({text} % {2 + self.below(3)})"
            case 2:
                header = f"range({self.below(3) - 1}, {text} % 4)"
            case 3:
                header = f"range({text} % 3, {-1 - self.below(3)}, -{1 + self.below(2)})"
            case 4:
                header = f"reversed(range({text} % {2 + self.below(3)}))"
            case _:
                header = f"range({1 + self.below(3)})"
        return self.loop(f"for {name} in {header}:", int=[name])

    def for_rows(self) -> Lines:
        """Over an array, its rows, or with a count beside it."""
        array, name = self.array_atom(), self.target()
        array = array if self.size < 5 else f"{array}[2:5]"
        match self.below(5):
            case 0 | 1:
                return self.loop(f"for {name} in {array}:", int=[name])
            case 2:
                return self.loop(f"for {name} in reversed({array}):", int=[name])
            case 3:
                start = self.pick(("", ", 1", f", {self.pick(self.scope.names['int'])}"))
                array = self.pick(("{}", "{}", "reversed({})")).format(array)
                return self.loop(f"for j, {name} in enumerate({array}{start}):", int=["j", name])
        return self.loop(f"for row in jnp.stack([{self.array_atom()}, {self.stored(self.array(1))}]):", array=["row"])

    def for_zip(self) -> Lines:
        """Side by side, as long as the shortest."""
        name = self.target()
        array = f"{self.array_atom()}[:3]"
        with_range = f"range({self.int(1).text} % 4)"
        match self.below(4):
            case 0:
                return self.loop(f"for j, {name} in zip({with_range}, {array}):", int=["j", name])
            case 1:
                return self.loop(f"for {name}, j in zip({array}, reversed({self.array_atom()})):", int=["j", name])
            case 2:
                header = f"for j, ({name}, o) in enumerate(zip({array}, {with_range})):"
                return self.loop(header, int=["j", name, "o"])
        other = self.stored(self.array(1))
        return self.loop(f"for j, {name}, o in zip({array}, {with_range}, {other}):", int=["j", name, "o"])

    def for_display(self) -> Lines:
        """Over a tuple or a dict: the body is copied for each element."""
        if self.unrolled:
            return self.for_range()
        name, ints = self.target(), [self.of_kind("int", 1) for _ in range(2 + self.below(2))]
        self.unrolled += 1
        match self.below(8):
            case 0 | 1:
                lines = self.loop(f"for {name} in ({', '.join(ints)}):", int=[name])
            case 2:
                lines = self.loop(f"for {name} in (1, {ints[0]}, {self.below(7)}):", int=[name])
            case 3:
                lines = self.loop(f"for g in ({self.of_kind('float', 1)}, {ints[0]}, 0.5):", float=["g"])
            case 4:
                pairs = ", ".join(f"({n}, {self.of_kind('int', 1)})" for n in ints)
                lines = self.loop(f"for j, {name} in [{pairs}]:", int=["j", name])
            case 5 | 6 if self.scope.names["dict"]:
                d = self.dict_atom()
                lines = self.loop(f"for key, {name} in {d}.items():", int=[name, f"{d}[key]"])
            case _:
                lines = self.loop(f"for {name} in pcbatch.unroll(range({1 + self.below(3)})):", int=[name])
        self.unrolled -= 1
        return lines

    def loop(self, header: str, **new: list[str]) -> Lines:
        """A `for` loop with its body, and now and then an `else`. `new`: the loop variables by kind."""
        outer, self.scope = self.scope, self.scope.inner()
        for kind, names in new.items():
            self.scope.names[kind] += [name for name in names if name not in self.scope.names[kind]]
        lines = self.block(header, loop=True)
        self.scope = outer
        return lines + (self.block("else:") if self.chance(4) else [])

    def while_loop(self) -> Lines:
        """Counts down something that nothing else assigns."""
        counter, times = self.new_name("k"), f"{1 + self.below(3)}"
        if self.chance(2):
            times = f"{self.int(1).text} % 4"
        form = self.below(5)
        self.loop_depth += 1
        more = self.condition()
        self.loop_depth -= 1
        outer, self.scope = self.scope, self.scope.inner()
        self.scope.names["int"].append(counter)
        limited = f"while {counter} > 0 and {more}:"
        header = ("while True:", f"while {counter} > 0:", limited, limited, f"while {counter}:")[form]
        lines = self.block(header, loop=True)
        self.scope = outer
        step = [f"{counter} -= 1"]
        if form == 0:
            step += [f"if {counter} < 0:", "    break"]
        lines = [lines[0], *indented(step), *lines[1:]]
        return [f"{counter} = {times}", *lines, *(self.block("else:") if self.chance(4) else [])]
