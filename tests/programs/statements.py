"""The statements of random programs."""

from __future__ import annotations

from collections.abc import Callable

from tests.programs.loops import Lines, indented
from tests.programs.matches import Matches
from tests.programs.tape import Signature

DEEPEST = 4  # nested blocks


class Statements(Matches):
    """Draws the bodies of functions."""

    def start(self, signature: Signature, budget: int) -> None:
        """Before a function."""
        self.signature, self.budget, self.style, self.current = signature, budget, signature.style, signature.name
        self.calls = 0 if signature.style in ("leaf", "inline") else 2 + self.below(3)
        self.fresh = self.unrolled = self.open = 0
        self.depth = self.loop_depth = 0

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
        terms += [f"{name}['n']" for name in self.scope.names["dict"]]
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
        simple += [self.annotated, self.pair, self.local, self.definition, self.starred, self.dictionary]
        simple += [self.printed, self.failed, self.asserted] * (2 * self.effects)
        if self.budget <= 0 or self.depth >= DEEPEST:
            return self.pick(simple)
        loops = [self.for_range] * 4 + [self.for_rows] * 3 + [self.while_loop] * 4
        loops += [self.for_zip, self.for_zip, self.for_display, self.for_display]
        leaves = [self.guarded_leave] * (4 if self.loop_depth else 2)
        calls = [self.call_statement] * (0 if self.style in ("leaf", "inline") else 6)
        others = [self.matched] * 4 + [self.short_lived, self.grown]
        return self.pick([*simple, *[self.branch] * 3, *loops, *leaves, *calls, *others])

    # Control flow

    def branch(self) -> Lines:
        """`if`, with or without more."""
        lines = self.block(f"if {self.condition()}:")
        if self.chance(4):
            lines += self.block(f"elif {self.condition()}:")
        if self.below(2):
            lines += self.block("else:")
        return lines

    def short_lived(self) -> Lines:
        """A variable that is deleted after a few statements. Its name may come again for something else."""
        kind, name = self.pick(("int", "float", "array", "bool")), f"z{self.open}"
        lines = [f"{name} = {self.of_kind(kind)}"]
        outer, self.scope = self.scope, self.scope.inner()
        self.scope.names[kind].append(name)
        self.scope.assignable[kind].append(name)
        self.open += 1
        lines += self.some_statements()
        self.open -= 1
        self.scope = outer
        return [*lines, f"del {name}"]

    def leave(self) -> Lines:
        """A jump as the last statement of a block."""
        jumps = ["break", "continue"] if self.loop_depth else []
        jump = self.pick([*jumps, f"return {self.result(1)}"])
        if self.effects and self.chance(5):
            return [f"if fuel < {self.below(3)}:", f"    {self.raised()}", "else:", f"    {jump}"]
        return [jump]

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
