"""Random programs that show the order of evaluation: expressions mix reads with calls that change what is read.

    r2 = o.v + p.upl(xs[1]) * bump(o, 3) - o.l[0]       # p may be o

What is read are attributes, elements and variables, of nested objects, lists and dicts, also by a second name of one
object; what changes them are functions, methods and nested functions, with branches or without.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.programs.container_programs import PythonProgram

CLASSES = """\
class Inner:
    def __init__(self, v):
        self.v = v
        self.w = 1

    def raised(self, k):
{raised}

class Outer:
    def __init__(self, v):
        self.v = v
        self.l = [v, 1, 2]
{made}
        self.i = Inner(v)

    def up(self, k):
{up}

    def upl(self, k):
{upl}

    def upd(self, k):
{upd}

    def upi(self, k):
{upi}

    def get(self):
        return self.v

    @property
    def both(self):
        return self.v + self.i.v

def bump(x, k):
{bump}

def store(ys, k):
{store}

def count(e, k):
{count}

def deep(x, k):
{deep}

def pair(x, y, k):
{pair}

def mix(m, n, k):
    return m * 3 + n * 5 + k
"""

CHANGES = {
    "raised": ("self.v += k",),
    "up": ("self.v += k", "self.v = self.v * 2 % 31 + k"),
    "upl": ("self.l[0] += k", "self.l.append(k)", "self.l[-1] = self.v", "self.l[k % 2], self.l[2] = self.l[2], k"),
    "upd": ("self.d[0] += k", "self.d[k % 3] = self.v", "self.d[1] = len(self.d) + k"),
    "upi": ("self.i.v += k", "self.i.raised(k)", "self.i.w = self.i.v"),
    "bump": ("x.v += k", "x.up(k)", "x.l[1] += k", "x.i.v += k"),
    "store": ("ys[0] += k", "ys.append(k)", "ys[k % 2] = len(ys)"),
    "count": ("e[0] += k", "e[k % 3] = e[1]", "e[1] = len(e)"),
    "deep": ("inner = x.i\n    inner.v += k", "inner = x.i\n    inner.w += inner.v"),
    "pair": ("x.v += y.v\n    y.l[0] += k", "y.v = x.v + k\n    x.i.v += 1"),
}


def evaluation_program(seed: int) -> PythonProgram:
    """Return the program of a seed."""
    return _Writer(random.Random(seed)).program()


class _Writer:
    """Writes one program; changes are one in three parts of an expression."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.results: list[str] = []
        self.has_dict = rng.random() < 0.2  # an object with a dict has no second name in these programs
        self.used = 0  # calls that change something: programs with many take long to compile

    def program(self) -> PythonProgram:
        """Write classes, functions and the entry."""
        bodies = {name: self._body(name) for name in CHANGES}
        bodies["made"] = "        self.d = {0: v, 1: 1}" if self.has_dict else "        self.e = v"
        if not self.has_dict:
            bodies["upd"] = "        self.e += k\n        return k"
        others = ("p = Outer(b)",) if self.has_dict else ("p = Outer(b)", "p = o", "p = Outer(b)\n    o.i = p.i")
        other = self.rng.choice(others)
        self.lines += [
            "def f0(a, b):", "    o = Outer(a)", f"    {other}", "    xs = [a, b, 3]", "    d = {0: a, 1: b}",
            "    c = a", "", "    def inc(k):", "        nonlocal c", "        c += k", f"        {self._result('k')}",
            "", "    def reach(k):", "        o.v += k", "        xs[0] += 1", f"        {self._result('k')}", "",
        ]  # fmt: skip
        for _ in range(self.rng.randint(1, 3)):
            self._statement("    ")
        self.lines.append(
            f"    return {', '.join([*self.results, 'c', 'o.v', 'p.v', 'o.l', 'p.l', 'o.i.v', 'p.i.v', 'xs'])}"
        )
        text = CLASSES.format(**bodies) + "\n" + "\n".join(self.lines) + "\n"
        return PythonProgram(text, (("a", "int"), ("b", "int")))

    def _body(self, name: str) -> str:
        indent = "        " if name in ("raised", "up", "upl", "upd", "upi") else "    "
        change = self.rng.choice(CHANGES[name]).replace("\n    ", "\n" + indent)
        if self.rng.random() < 0.5:
            deeper = change.replace("\n" + indent, "\n" + indent + "    ")
            change = f"if k > {self.rng.randint(-1, 2)}:\n{indent}    {deeper}"
        return f"{indent}{change}\n{indent}{self._result('k')}"

    def _result(self, name: str) -> str:
        return self.rng.choice((f"return {name}", "return 2", f"return {name} % 3 + 1"))

    # Statements.

    def _statement(self, indent: str) -> None:
        kinds: list[Callable[[str], None]] = [
            self._assign, self._assign, self._assign, self._assign_part, self._augment, self._several, self._branch,
            self._loop,
        ]  # fmt: skip
        self.rng.choice(kinds if indent == "    " else kinds[:6])(indent)

    def _name(self, holds_number: bool = True) -> str:
        self.results.append(f"r{len(self.results)}")
        if holds_number:
            self.lines.insert(self.lines.index("    c = a") + 1, f"    {self.results[-1]} = 0")
        return self.results[-1]

    def _assign(self, indent: str) -> None:
        kind = self.rng.randrange(0 if indent == "    " else 2, 8)
        name = self._name(kind > 1)
        self.lines.append(f"{indent}{name} = {self._wide(kind)}")

    def _wide(self, kind: int) -> str:
        """An expression with many parts; the first two kinds are tuples."""
        e = self._value
        match kind:
            case 0:
                return f"({e(2)}, {e(2)}, {e(1)})"
            case 1:
                return f"({e(1)} > {e(1)} and {e(1)} < {e(1)}, not {e(1)} == {e(1)})"
            case 2:
                return f"mix({e(1)}, {e(2)}, k={e(1)})"
            case 3:
                return f"1 if {e(1)} < {e(1)} <= {e(1)} else {e(1)}"
            case 4:
                return f"sum([{e(1)} + j for j in range(2)])"
            case 5:
                return f"[{e(2)}, {e(1)}, {e(2)}][{e(1)} % 3]"
            case _:
                return f"{e(2)} {self.rng.choice('+-')} {e(2)}"

    def _assign_part(self, indent: str) -> None:
        self.lines.append(f"{indent}{self._part()} = {self._value(2)}")

    def _augment(self, indent: str) -> None:
        self.lines.append(f"{indent}{self._part()} += {self._value(2)}")

    def _several(self, indent: str) -> None:
        self.lines.append(f"{indent}{self._part()}, {self._name()} = {self._value(1)}, {self._value(2)}")

    def _branch(self, indent: str) -> None:
        self.lines.append(f"{indent}if {self._value(2)} > {self._value(1)}:")
        self._statement(indent + "    ")

    def _loop(self, indent: str) -> None:
        name = self._name()
        self.lines.append(f"{indent}while {name} < 3 and {self._value(1)} - {self._value(1)} < 9:")
        self._statement(indent + "    ")
        self.lines.append(f"{indent}    {name} += 1")

    def _part(self) -> str:
        """A place that is stored into."""
        own = "o.d[{}]" if self.has_dict else "o.e"
        places = ("o.v", "p.v", "o.i.v", "p.i.w", "o.l[{}]", "p.l[{}]", "xs[{}]", "d[{}]", own)
        return self.rng.choice(places).format(self.rng.choice(("0", "1", f"{self._value(0)} % 2")))

    # Values, integers all of them.

    def _value(self, depth: int) -> str:
        draw = self.rng.random()
        if depth == 0 or draw < 0.25:
            return self._read()
        if draw < 0.65 and self.used < 5:
            return self._change(depth - 1)
        left, right = self._value(depth - 1), self._value(depth - 1)
        match self.rng.randrange(6):
            case 0:
                return f"{left} * 2 % 17"
            case 1:
                return f"max({left}, {right})"
            case 2:
                return f"abs({left} - {right})"
            case 3:
                return f"({left} if {right} > 1 else {self._read()})"
            case _:
                return f"({left} {self.rng.choice('+-')} {right})"

    def _read(self) -> str:
        return self.rng.choice((
            "a", "c", "1", "o.v", "p.v", "o.v", "o.i.v", "p.i.v", "o.i.w", "o.l[0]", "p.l[1]", "xs[0]", "xs[1]",
            "xs[-1]", "d[0]", "d[1]", *(("o.d[0]", "p.d[1]") if self.has_dict else ("o.e", "p.e")), "len(o.l)",
            "len(xs)", "sum(xs)", "o.get()", "p.both", "len(d)",
        ))  # fmt: skip

    def _change(self, depth: int) -> str:
        self.used += 1
        k = self._value(depth) if depth and self.rng.random() < 0.4 else self.rng.choice(("1", "2", "a % 4", "o.v % 5"))
        name = self.rng.choice("op")
        return self.rng.choice((
            f"{name}.up({k})", f"{name}.upl({k})", f"{name}.upd({k})", f"{name}.upi({k})", f"bump({name}, {k})",
            f"store(xs, {k})", f"count(d, {k})", f"deep({name}, {k})", f"inc({k})", f"reach({k})", f"pair(o, p, {k})",
            f"store({name}.l, {k})", f"{name}.i.raised({k})",
            "xs.pop(0) + len(xs)" if self.used == 3 else f"{name}.up({k})",
        ))  # fmt: skip
