"""The expressions of random programs. Every one is drawn with what is known of its value, so that nothing overflows.

An integer stays below 2**30 and a float is a multiple of a power of two with few digits: 32-bit JAX, 64-bit NumPy and
unbounded Python then agree exactly, and results can be compared with `==`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.programs.tape import COARSE, GLOBALS, SMALL, Expr, Signature, Tape


class Expressions(Tape):
    """Draws expressions."""

    def of_kind(self, kind: str, depth: int = 2) -> str:
        """An expression that a variable of this kind may hold."""
        match kind:
            case "int":
                return self.stored(self.int(depth))
            case "float":
                return self.stored_float(self.float(depth))
            case "bool":
                return self.bool(depth)
            case "array":
                return self.stored(self.array(depth))
            case "pair":
                return f"({self.of_kind('int', 1)}, {self.of_kind('int', depth)})"
            case "dict":
                return self.dict(depth)
        raise AssertionError(kind)

    def stored(self, e: Expr) -> str:
        """Brought into the range of variables."""
        return e.text if e.bound <= SMALL else f"{e.text} % {self.pick((97, 13, 5))}"

    def stored_float(self, e: Expr) -> str:
        """Likewise, with few digits."""
        if e.unit < COARSE:
            e = Expr(f"jnp.floor({e.text})", e.bound + 1)
        return e.text if e.bound <= SMALL else f"{e.text} % 16.0"

    def limited(self, e: Expr) -> Expr:
        """The expression, made smaller if it could overflow, or lose digits, in what is built around it."""
        if e.unit < 2**-8:
            e = Expr(f"jnp.floor({e.text})", e.bound + 1)
        if e.bound > 2**27 or e.bound / e.unit > 2**21 > e.bound / e.unit * (e.unit == 1):
            return Expr(f"({e.text} % {97 if e.unit == 1 else 16.0})", SMALL, e.unit)
        return e

    # Integers

    def int(self, depth: int) -> Expr:
        """An integer."""
        if depth <= 0 or self.below(4) == 0:
            return self.int_atom()
        forms: list[Callable[[int], Expr]] = [self.int_arithmetic] * 5 + [self.int_by_literal] * 2
        forms += [self.int_element, self.int_unary, self.int_function, self.int_sum]
        forms += [self.int_item] * bool(self.scope.names["dict"])
        if not self.pure:
            forms += [self.int_ternary, self.int_bool_op, self.int_walrus]
            forms += [self.int_pair] * bool(self.scope.names["pair"])
            forms += [lambda d: Expr(self.call_of(("int",), d))] * (8 * self.may_call(("int",)))
        return self.limited(self.pick(forms)(depth - 1))

    def int_atom(self) -> Expr:
        """A variable, a literal, a global."""
        names = self.scope.names["int"]
        k = self.below(10)
        if k < 7 and names:
            return Expr(self.pick(names))
        if k == 9:
            hidden = {n for found in self.scope.names.values() for n in found}
            free = [name for name in GLOBALS if name not in hidden]
            if free:
                return Expr(self.pick(free), 7)
        return Expr(str(self.below(13) - 3 if k else 0), 9)

    def int_arithmetic(self, depth: int) -> Expr:
        """Two operands."""
        a, b = self.int(depth), self.int(depth)
        match self.pick("+-*+-"):
            case "*":
                return Expr(f"({a.text} * {b.text})", a.bound * b.bound) if a.bound * b.bound < 2**30 else a
            case op:
                return Expr(f"({a.text} {op} {b.text})", a.bound + b.bound)

    def int_by_literal(self, depth: int) -> Expr:
        """Division and bits, where the right side must be chosen with care."""
        a, n = self.int(depth), self.below(5) + 2
        match self.below(6):
            case 0:
                return Expr(f"({a.text} % {n})", n)
            case 1:
                return Expr(f"({a.text} // {n})", a.bound)
            case 2:
                return Expr(f"({a.text} % -{n})", n)
            case 3:
                return Expr(f"({a.text} & {n})", n)
            case 4:
                return Expr(f"({a.text} ^ {n})", a.bound + 8)
        return Expr(f"({a.text} ** 2)", a.bound**2) if a.bound < 2**15 else a

    def int_element(self, depth: int) -> Expr:
        """An element of an array."""
        return Expr(f"{self.array_atom()}[{self.index(depth)}]")

    def index(self, depth: int) -> str:
        """A position in an array, sometimes counted from the end."""
        if self.chance(4):
            return "-1"
        return f"{self.int(depth).text} % {self.size}"

    def int_unary(self, depth: int) -> Expr:
        """One operand."""
        a = self.int(depth)
        return Expr(f"{self.pick(('-', '~', 'abs'))}({a.text})", a.bound + 1)

    def int_function(self, depth: int) -> Expr:
        """Calls that are not calls of batched functions."""
        a, b = self.int(depth), self.int(depth)
        bound = max(a.bound, b.bound)
        self.pure += 1
        inside = self.int(depth - 1)
        self.pure -= 1
        forms = [
            Expr(f"jnp.minimum({a.text}, {b.text})", bound),
            Expr(f"jnp.where({self.comparison()}, {a.text}, {b.text})", bound),
            Expr(f"(lambda x: x + {inside.text})({a.text})", a.bound + inside.bound),
        ]
        if "twice" not in self.scope.names["int"]:
            forms.append(Expr(f"twice({a.text})", 2 * a.bound))
        for name in self.scope.helpers:
            argument = "k=" if self.chance(3) else ""
            forms += [Expr(f"{name}({self.stored(a)}, {argument}{self.stored(b)})"), Expr(f"{name}({self.stored(b)})")]
        return self.pick(forms)

    def int_sum(self, depth: int) -> Expr:
        """Reductions and comprehensions; the variable of a comprehension hides a local."""
        self.pure += 1
        form = self.below(4)
        items = f"({self.int(depth).text}, {self.int(depth).text})"
        inner = self.stored(self.int(depth))
        array = self.array_atom()
        self.pure -= 1
        match form:
            case 0:
                return Expr(f"jnp.sum({array})", SMALL * self.size)
            case 1:
                return Expr(f"sum([x * 2 % 89 for x in {items}])", 2 * SMALL)
            case 2:
                return Expr(f"sum([{array}[y] + y for y in range({min(3, self.size)})])", 3 * SMALL + 9)
        return Expr(f"sum([{inner} for z in range(2)])", 2 * SMALL)

    def int_ternary(self, depth: int) -> Expr:
        """One of two."""
        a, b = self.int(depth), self.int(depth)
        return Expr(f"({a.text} if {self.bool(depth)} else {b.text})", max(a.bound, b.bound))

    def int_bool_op(self, depth: int) -> Expr:
        """`and` and `or` give one of their operands."""
        a, b = self.int(depth), self.int(depth)
        return Expr(f"({a.text} {self.pick(('and', 'or'))} {b.text})", max(a.bound, b.bound))

    def int_pair(self, depth: int) -> Expr:
        """A part of a tuple."""
        return Expr(f"{self.pick(self.scope.names['pair'])}[{self.pick((0, 1, -1))}]")

    def int_item(self, depth: int) -> Expr:
        """A value of a dict, or what is given for a missing one."""
        return Expr(self.pick(("{}['s']", "{}['n']", "{}.get('n', 5)", "{}.get('z', 5)")).format(self.dict_atom()))

    def int_walrus(self, depth: int) -> Expr:
        """An assignment on the way."""
        if self.message or not self.scope.assignable["int"]:
            return self.int_atom()
        return Expr(f"({self.pick(self.scope.assignable['int'])} := {self.stored(self.int(depth))})")

    def dict_atom(self) -> str:
        """A variable."""
        return self.pick(self.scope.names["dict"])

    def dict(self, depth: int) -> str:
        """A dict of two numbers, or another one with a number replaced."""
        names = self.scope.names["dict"]
        if names and self.below(3):
            return f"{{**{self.pick(names)}, {self.pick(('s', 'n'))!r}: {self.of_kind('int', depth)}}}"
        form = self.pick(("{{'s': {}, 'n': {}}}", "dict(s={}, n={})"))
        return form.format(self.of_kind("int", 1), self.of_kind("int", depth))

    # Floats

    def float(self, depth: int) -> Expr:
        """A float, or an integer that becomes one."""
        names = self.scope.names["float"]
        if depth <= 0 or self.below(4) == 0:
            if names and self.below(4):
                return Expr(self.pick(names), SMALL, COARSE)
            return Expr(self.pick(("0.0", "0.5", "1.25", "-0.75", "2.0")), 2, COARSE) if self.below(2) else self.int(0)
        if not self.pure and self.may_call(("float",)) and self.chance(2):
            return Expr(self.call_of(("float",), depth - 1), SMALL, COARSE)
        return self.limited(self.float_operation(depth - 1))

    def float_operation(self, depth: int) -> Expr:
        """Arithmetic that stays exact."""
        a, b = self.float(depth), self.float(depth)
        bound, unit = max(a.bound, b.bound), min(a.unit, b.unit)
        match self.below(9 if self.pure else 10):
            case 0 | 1:
                return Expr(f"({a.text} + {b.text})", a.bound + b.bound, unit)
            case 2:
                return Expr(f"({a.text} - {b.text})", a.bound + b.bound, unit)
            case 3 if a.bound * b.bound / (a.unit * b.unit) < 2**22:
                return Expr(f"({a.text} * {b.text})", a.bound * b.bound, a.unit * b.unit)
            case 4:
                return Expr(f"({a.text} / 2)", a.bound, a.unit / 2)
            case 5:
                return Expr(f"jnp.floor({a.text})", a.bound + 1)
            case 6:
                return Expr(f"abs({a.text})", a.bound, a.unit)
            case 7:
                return Expr(f"jnp.maximum({a.text}, {b.text})", bound, unit)
            case 9:
                return Expr(f"({a.text} if {self.bool(depth)} else {b.text})", bound, unit)
        return Expr(f"jnp.where({self.comparison()}, {a.text}, {b.text})", bound, unit)

    # Conditions

    def comparison(self) -> str:
        """Two atoms: what may stand inside plain Python."""
        return f"{self.int_atom().text} {self.pick(('<', '<=', '>', '==', '!='))} {self.int_atom().text}"

    def bool(self, depth: int) -> str:
        """A condition that is a bool."""
        names = self.scope.names["bool"]
        if self.pure or depth <= 0:
            return self.pick(names) if names and self.chance(3) else self.comparison()
        k = self.below(19)
        if k < 3:
            return self.comparison()
        if k > 16 and self.may_call(("int",)):
            return self.about(self.call_of(("int",), depth - 1))
        if k > 14 and self.may_call(("bool",)):
            return self.call_of(("bool",), depth - 1)
        if k < 5 or k > 14:
            return f"{self.int(depth).text} {self.pick(('<', '>=', '!='))} {self.int_atom().text}"
        if k == 5:
            return f"{self.float(depth - 1).text} {self.pick(('<', '>='))} {self.float(1).text}"
        if k == 6 and names:
            return self.pick(names)
        if k < 12:
            return self.combined(k - 7, depth - 1)
        if k == 12:
            return f"jnp.any({self.array_atom()} > {self.int_atom().text})"
        if k == 13:
            return f"{self.int(depth).text} {self.pick(('in', 'not in'))} (1, {self.int_atom().text}, 4)"
        return f"not {self.int(depth - 1).text}"

    def about(self, number: str) -> str:
        """A condition on a number."""
        forms = ("not {0}", "{1} < {0} <= 9", "{0} in (1, {1}, 4)", "{0} % 3 < 2")
        return self.pick(forms).format(number, self.int_atom().text)

    def combined(self, form: int, depth: int) -> str:
        """Short circuits, and chains whose middle is evaluated once."""
        match form:
            case 0:
                return f"({self.bool(depth)} and {self.bool(depth)})"
            case 1:
                return f"({self.bool(depth)} or {self.bool(depth)})"
            case 2:
                return f"(not {self.bool(depth)})"
            case 3:
                tail = f" != {self.int(depth).text}" if self.chance(3) else ""
                return f"{self.int_atom().text} < {self.int(depth + 1).text} <= {self.int(depth).text}{tail}"
        return f"({self.bool(depth)} if {self.bool(depth)} else {self.bool(depth)})"

    def condition(self, depth: int = 2) -> str:
        """What stands after `if` and `while`: a bool, or a number that is true unless zero."""
        if self.scope.names["bool"] and self.chance(5):
            return self.pick(("", "not ")) + self.pick(self.scope.names["bool"])
        if self.chance(6):
            return self.int(depth).text
        if self.may_call(("bool",)) and self.chance(3):
            return self.call_of(("bool",), 1)
        return self.bool(depth)

    # Arrays

    def array_atom(self) -> str:
        """A variable if there is one."""
        names = self.scope.names["array"]
        return self.pick(names) if names else f"jnp.arange({self.size})"

    def array(self, depth: int) -> Expr:
        """An array of small integers."""
        if depth <= 0 or self.below(4) == 0:
            return Expr(self.array_atom())
        if not self.pure and self.may_call(("array",)) and self.chance(2):
            return Expr(self.call_of(("array",), depth - 1))
        a = self.array(depth - 1)
        match self.below(9 if not self.pure else 8):
            case 0 | 1 | 2:
                return Expr(f"{a.text}.at[{self.index(1)}].set({self.stored(self.int(depth - 1))})", a.bound)
            case 3 | 4:
                return Expr(f"{a.text}.at[{self.index(1)}].add({self.stored(self.int(depth - 1))})", a.bound + SMALL)
            case 5:
                return Expr(f"({a.text} + {self.int_atom().text})", a.bound + SMALL)
            case 6:
                return Expr(f"{a.text}[::-1]", a.bound)
            case 7:
                return Expr(f"jnp.where({self.array_atom()} > {self.int_atom().text}, {a.text}, 1)", a.bound)
        b = self.array(depth - 1)
        return Expr(f"({a.text} if {self.bool(depth - 1)} else {b.text})", max(a.bound, b.bound))

    # Calls of batched functions

    def may_call(self, result: tuple[str, ...]) -> bool:
        """Is there a function with this result, and may it be called here?"""
        enough = self.calls >= (2 if self.loop_depth else 1) and self.loop_depth < 2
        return enough and any(f.result == result for f in self.functions)

    def call_of(self, result: tuple[str, ...], depth: int) -> str:
        """A call as an expression, safe without fuel."""
        text = self.raw_call(self.callee([f for f in self.functions if f.result == result]), depth)
        if self.style == "base":
            return text
        if result == ("bool",):
            return f"(fuel > 0 and {text})"
        return f"({text} if fuel > 0 else {self.of_kind(result[0], 0)})"

    def callee(self, candidates: Sequence[Signature]) -> Signature:
        """One of some functions, not always the one that is being written."""
        others = [f for f in candidates if f.name != self.current]
        return self.pick([*candidates, *others, *others])

    def raw_call(self, f: Signature, depth: int) -> str:
        """The call itself: some arguments by keyword, some left to their defaults."""
        self.calls -= 2 if self.loop_depth else 1
        by_keyword = min(self.below(len(f.params) + 1), len(f.params) - f.keyword_only)
        named = len(f.params) - f.keyword_only - by_keyword
        args = []
        together = self.both(f, named)
        for k, (name, kind, default) in enumerate(f.params):
            if together in (k, k - 1):
                args += [f"*{self.of_kind('pair', 1)}"] * (k == together)
                continue
            if default is not None and (k >= named or name == f.params[-1][0]) and self.chance(2):
                named = k  # those after it need their names
                continue
            value = f"fuel - {1 + self.chance(4)}" if name == "fuel" else self.of_kind(kind, min(depth, 1))
            args.append(f"{name}={value}" if k >= named else value)
        return f"{f.name}({', '.join(args)})"

    def both(self, f: Signature, named: int) -> int | None:
        """Now and then, the first of the last two arguments by position, where both are integers: `*pair` gives both.

        How many a `*pair` gives cannot be known where some parameters are optional.
        """
        optional = any(default for _, _, default in f.params[: len(f.params) - f.keyword_only])
        kinds = [name != "fuel" and kind for name, kind, _ in f.params[:named]]
        return named - 2 if kinds[-2:] == ["int", "int"] and not optional and self.chance(2) else None
