"""Random programs over floating numbers, for derivatives: smooth steps, loops, recursion, branches, arrays in part.

As in `random_programs`, a program is text that some bytes stand for. Every number stays between -2 and 2, so
derivatives of long runs stay small; where a derivative is infinite, lanes do not look at the value.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from tests.programs.loops import Lines, indented
from tests.programs.tape import Tape

BYTES = 500
PARAMS = ("a", "b", "v", "k", "c", "W")  # of the entry: scalars, a vector, an integer, a scalar, a matrix
_serial = itertools.count()


@jax.custom_vjp
def backward_rule(x: Any) -> Any:
    """A derivative that is not that of the value."""
    return jnp.sin(x)


backward_rule.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x) * 0.5 + ct * 0.25,))


@jax.custom_jvp
def forward_rule(x: Any) -> Any:
    """Likewise, for both modes."""
    return jnp.cos(x)


@forward_rule.defjvp
def _forward_rule_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    return forward_rule(primals[0]), tangents[0] * jnp.tanh(primals[0])


@dataclass(frozen=True)
class SmoothProgram:
    """Source text whose entry is `f0`."""

    text: str
    size: int

    def __repr__(self) -> str:
        return f"program with vectors of {self.size}:\n{self.text}"

    def arguments(self, seed: int, lanes: int) -> tuple[Any, ...]:
        """For `PARAMS`; of W and c one for each lane as well."""
        rng = np.random.default_rng(seed)
        scalars = [np.where(rng.random(lanes) < 0.2, 0.0, rng.uniform(-1.5, 1.5, lanes)) for _ in range(3)]
        vector = rng.uniform(-1, 1, (lanes, self.size))
        matrix = rng.uniform(-1, 1, (lanes, self.size, self.size))
        return (scalars[0], scalars[1], vector, rng.integers(0, 6, lanes).astype(np.int32), scalars[2], matrix)

    def load(self) -> Any:
        """The batched entry."""
        number = next(_serial)
        name = f"<smooth program {number}>"
        linecache.cache.pop(f"<smooth program {number - 100}>", None)
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        namespace: dict[str, Any] = {
            "pcbatch": pcbatch, "jax": jax, "jnp": jnp, "forward_rule": forward_rule, "backward_rule": backward_rule
        }  # fmt: skip
        exec(compile(self.text, name, "exec"), namespace)
        return namespace["f0"]


@dataclass
class Names:
    """What may be read, by kind."""

    scalar: list[str] = field(default_factory=list)
    vector: list[str] = field(default_factory=list)
    int: list[str] = field(default_factory=list)
    bool: list[str] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)  # not to be assigned

    def inner(self) -> Names:
        """A copy, for a block whose new names are not seen after it."""
        return Names([*self.scalar], [*self.vector], [*self.int], [*self.bool], {*self.fixed})

    def open(self, kind: str) -> list[str]:
        """Those that may be assigned."""
        return [name for name in getattr(self, kind) if name not in self.fixed]


class Writer(Tape):
    """Writes functions, from the choices on a tape."""

    def __init__(self, tape: bytes) -> None:
        super().__init__(tape)
        self.size = self.pick((3, 17, 40))
        self.helpers = self.below(3)
        self.fails = self.chance(6)
        self.names = Names()
        self.function = 0
        self.budget = 0

    def text(self) -> str:
        """The program."""
        parts = ["\n".join(self.helper(k)) for k in range(1, 1 + self.helpers)]
        return "\n\n".join([*parts, "\n".join(self.entry())]) + "\n"

    def start(self, function: int, budget: int) -> None:
        """Begin a function."""
        self.function, self.budget, self.fresh, self.loop_depth, self.calls = function, budget, 0, 0, 2

    def helper(self, k: int) -> Lines:
        """A function that calls itself, and those after it, on less fuel."""
        self.start(k, 2 + self.below(5))
        self.names = Names(["a", "c"], ["v"], ["fuel", "m"], [], {"fuel", "c"})
        base = [f"m = {self.below(4)}", "if fuel <= 0:", f"    return {self.result()}"]
        lines = [*base, *self.first(), *self.block(self.names)]
        return ["@pcbatch.batch", f"def f{k}(a, v, c, W, fuel):", *indented([*lines, f"return {self.result()}"])]

    def entry(self) -> Lines:
        """The function that is called."""
        self.start(0, 3 + self.below(9))
        self.names = Names(["a", "b", "c"], ["v"], ["k", "m"], [], {"c"})
        lines = [f"m = {self.below(4)}", *self.first(), *self.block(self.names)]
        shown = [self.result(), "k", *(["p"] if "p" in self.names.bool else [])]
        returned = f"return {', '.join(shown)}"
        return ["@pcbatch.batch", "def f0(a, b, v, k, c, W):", *indented([*lines, returned])]

    def first(self) -> Lines:
        """Locals that every block may assign."""
        lines = [f"s = {self.scalar(1)}", f"t = {self.scalar(1)}"]
        self.names.scalar += ["s", "t"]
        if self.below(2):
            lines.append(f"u = {self.vector(1)}")
            self.names.vector.append("u")
        if self.below(2):
            lines.append(f"p = {self.condition(1)}")
            self.names.bool.append("p")
        return lines

    def result(self) -> str:
        """What a function returns: a number and a vector."""
        return f"{self.scalar(1)}, {self.vector(1)}"

    # Expressions

    def scalar(self, depth: int) -> str:
        """A number."""
        if depth <= 0 or self.chance(5):
            return self.pick([*self.names.scalar, *self.names.scalar, "0.5", "-1.25"])
        a, b, v = (lambda: self.scalar(depth - 1)), (lambda: self.scalar(depth - 1)), (lambda: self.vector(depth - 1))
        forms: tuple[Callable[[], str], ...] = (
            lambda: f"jnp.sin({a()})",
            lambda: f"({a()} * {b()} * 0.5)",
            lambda: f"({a()} + {b()}) * 0.5",
            lambda: f"jnp.tanh({a()})",
            lambda: f"({a()} - {b()}) * 0.5",
            lambda: f"({a()} / (1.0 + {b()} ** 2))",
            lambda: f"jnp.exp(-({a()} ** 2))",
            lambda: f"jnp.log(1.0 + {a()} ** 2)",
            lambda: f"jnp.sqrt(0.5 + {a()} ** 2) * 0.5",
            lambda: f"{v()}[{self.index()}]",
            lambda: f"{v()}[{self.below(3)}]",
            lambda: f"jnp.sum({v()}) / {self.size}",
            lambda: f"jnp.dot({v()}, {v()}) / {2 * self.size}",
            lambda: f"jnp.where({a()} < {b()}, {a()}, {b()})",
            lambda: f"({a()} if {self.condition(1)} else {b()})",
            lambda: f"jnp.maximum({a()}, {b()})",
            lambda: f"max({a()}, {b()})",
            lambda: f"abs({a()})",
            lambda: f"{self.pick(CUSTOM)}({a()})",
            lambda: f"jax.scipy.special.logsumexp({v()}) / 4",
            lambda: f"jax.lax.stop_gradient({a()})",
            lambda: f"jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))({a()})",
            lambda: f"jnp.linalg.norm({v()} + 3.0) / {4 * self.size}",
            lambda: f"({a()} + m * 0.25) * 0.5",
            lambda: f"jnp.sum(jax.lax.dynamic_slice({self.pick(self.names.vector)}, ({self.index()},), (2,))) * 0.5",
            lambda: f"jax.grad(lambda x: jnp.sin(x) * {a()})({b()}) * 0.5",
        )
        return self.pick(forms)()

    def vector(self, depth: int) -> str:
        """A vector, which can be indexed as it stands."""
        if depth <= 0 or self.chance(3):
            return self.pick(self.names.vector)
        s, v = (lambda: self.scalar(depth - 1)), (lambda: self.vector(depth - 1))
        forms: tuple[Callable[[], str], ...] = (
            lambda: f"jnp.tanh({v()} * {s()})",
            lambda: f"(({v()} + {v()}) * 0.5)",
            lambda: f"jnp.sin(W @ {v()})",
            lambda: f"(W @ {v()} / {self.size})",
            lambda: f"({v()} * {v()} * 0.5)",
            lambda: f"{v()}[::-1]",
            lambda: f"jnp.roll({v()}, 1)",
            lambda: f"jnp.where({v()} > {s()}, {v()}, {s()})",
            lambda: f"jnp.cumsum({v()} / {self.size})",
            lambda: f"({v()} @ W / {self.size})",
            lambda: f"(W[{self.index()}] * {s()} * 0.5)",
            lambda: f"jax.nn.softmax({v()})",
        )
        return self.pick(forms)()

    def index(self) -> str:
        """A place in a vector."""
        return self.pick(("m", "(m + 1)", self.pick(self.names.int))) + f" % {self.size}"

    def condition(self, depth: int) -> str:
        """Something true or false, of lanes."""
        a = self.pick(self.names.scalar)
        k = self.pick(self.names.int) if self.names.int else "1"
        forms = [f"{a} > 0.1", f"{k} % 2 == 0", f"{a} < {self.pick(self.names.scalar)} + 0.3", f"{k} < 3"]
        forms += [f"{self.pick(self.names.vector)}[1] > 0.0", *(self.names.bool[:1])]
        if depth > 0:
            forms += [f"{self.condition(0)} {self.pick(('and', 'or'))} {self.condition(0)}"]
        return self.pick(forms)

    # Statements

    def block(self, names: Names) -> Lines:
        """Some statements, at least one."""
        outer, self.names = self.names, names
        lines = self.statement()
        while self.budget > 0 and self.below(4):
            lines += self.statement()
        self.names = outer
        return lines

    def statement(self) -> Lines:
        """One, and what is in it."""
        self.budget -= 1
        plain = (self.assign, self.assign, self.assign, self.store, self.store, self.count)
        nested = (
            self.branch,
            self.branch,
            self.loop,
            self.loop,
            self.times,
            self.rows,
            self.call,
            self.call,
            self.guarded,
        )
        nested += (self.leave,)
        return self.pick(plain if self.budget <= 0 else (*plain, *nested))()

    def assign(self) -> Lines:
        kind = self.pick(("scalar", "scalar", "vector", "bool"))
        names = self.names.open(kind)
        if not names:
            return self.count()
        value = {"scalar": self.scalar, "vector": self.vector, "bool": self.condition}[kind](2)
        return [f"{self.pick(names)} = {value}"]

    def store(self) -> Lines:
        """An array changes in part."""
        v, i = self.pick(self.names.open("vector")), self.index()
        rows = f"jnp.stack([{self.scalar(1)}, {self.scalar(1)}])"
        forms = (
            f"{v}.at[{i}].set({self.scalar(2)})",
            f"{v}.at[{i}].add({self.scalar(1)} * 0.25)",
            f"{v}.at[{i}].set({v}[{self.index()}] * {self.scalar(1)} * 0.5)",
            f"{v}.at[jnp.array([0, 2])].set({rows})",
            f"{v}.at[jnp.array([1, 1])].add({rows} * 0.25)",
            f"{v}.at[0:2].set({rows})",
            f"jax.lax.dynamic_update_slice({v}, {rows}, ({i},))",
            f"{v}.at[{i}].set(W[0, 1])",
            f"{v}.at[{i}].set(c)",
            f"{v}.at[{i}].set({self.scalar(1)}).at[{self.index()}].add({self.scalar(1)} * 0.25)",
        )
        return [f"{v} = {self.pick(forms)}"]

    def count(self) -> Lines:
        return [f"m = (m + {1 + self.below(3)}) % 7"]

    def branch(self) -> Lines:
        lines = [f"if {self.condition(1)}:", *indented(self.block(self.names.inner()))]
        if self.below(2):
            lines += ["else:", *indented(self.block(self.names.inner()))]
        return lines

    def loop(self) -> Lines:
        """A loop that counts down, and may end by what floats say."""
        if self.loop_depth >= 2:
            return self.branch()
        i = self.new_name("i")
        self.loop_depth += 1
        inner = self.names.inner()
        inner.int.append(i)
        inner.fixed.add(i)
        body = self.block(inner)
        if self.chance(3):
            body += [f"if {self.condition(1)}:", f"    {self.pick(('break', 'continue'))}"]
        self.loop_depth -= 1
        test = f"{i} > 0" + (f" and {self.condition(0)}" if self.chance(4) else "")
        lines = [f"{i} = {self.pick(self.names.int)} % {3 + self.below(3)}", f"while {test}:"]
        lines += indented([f"{i} = {i} - 1", *body])
        if self.chance(4):
            lines += ["else:", *indented(self.block(self.names.inner()))]
        return lines

    def times(self) -> Lines:
        """`for` over a range."""
        if self.loop_depth >= 2:
            return self.branch()
        i = self.new_name("j")
        self.loop_depth += 1
        inner = self.names.inner()
        inner.int.append(i)
        inner.fixed.add(i)
        body = self.block(inner)
        self.loop_depth -= 1
        return [f"for {i} in range({self.pick(self.names.int)} % {2 + self.below(4)}):", *indented(body)]

    def rows(self) -> Lines:
        """`for` over a vector, or over the rows of a matrix."""
        if self.loop_depth >= 1 or self.size > 17:
            return self.branch()
        x = self.new_name("x")
        self.loop_depth += 1
        inner = self.names.inner()
        over, kind = ("W", inner.vector) if self.chance(3) else (self.pick(self.names.vector), inner.scalar)
        kind.append(x)
        inner.fixed.add(x)
        body = self.block(inner)
        self.loop_depth -= 1
        return [f"for {x} in {over}:", *indented(body)]

    def call(self) -> Lines:
        """Of a helper; in a helper of one that is not before it."""
        callable_ = [k for k in range(max(1, self.function), 1 + self.helpers)]
        if not callable_ or self.calls == 0 or self.loop_depth > (0 if self.function else 1):
            return self.assign()
        self.calls -= 1
        fuel = "fuel - 1" if self.function else f"{self.pick(self.names.int)} % 4"
        given = f"{self.scalar(1)}, {self.vector(1)}, {self.pick(('c', self.scalar(0)))}"
        called = f"f{self.pick(callable_)}({given}, W, {fuel})"
        s, v = self.pick(self.names.open("scalar")), self.pick(self.names.open("vector"))
        forms = (
            f"{s}, {v} = {called}",
            f"{s}, _ = {called}",
            f"{s} = jnp.tanh({called}[0] + {self.scalar(0)})",
            f"_, {v} = {called}",
        )
        return [self.pick(forms)]

    def guarded(self) -> Lines:
        """A value with an infinite derivative, or none, that lanes look at only where it has one."""
        z, g = self.new_name("z"), self.new_name("g")
        wild = self.pick(("jnp.log({g})", "jnp.sqrt({g})", "1.0 / {g}", "{g} ** 0.5", "jnp.arccos({g})")).format(g=g)
        lines = [f"{g} = {self.scalar(1)}", f"{z} = {wild}"]
        if self.budget > 0 and self.below(2):
            lines += self.block(self.names)
        s = self.pick(self.names.open("scalar"))
        return [*lines, f"if {g} > 0.2 and {g} < 0.9:", f"    {s} = jnp.tanh({z} * {self.scalar(1)})"]

    def leave(self) -> Lines:
        """An early return, or a failure."""
        if self.fails and self.below(2):
            s = self.pick(self.names.scalar)
            return [f"assert {s} < 0.9, 'too large'"]
        if self.function == 0:
            shown = [self.result(), "k", *(["p"] if "p" in self.names.bool else [])]
            return [f"if {self.condition(1)}:", f"    return {', '.join(shown)}"]
        return [f"if {self.condition(1)}:", f"    return {self.result()}"]


CUSTOM = ("jax.nn.softplus", "jax.nn.relu", "forward_rule", "backward_rule", "jax.nn.silu")


def smooth_program(tape: bytes) -> SmoothProgram:
    """The program that some bytes stand for."""
    writer = Writer(tape)
    return SmoothProgram(writer.text(), writer.size)


def smooth_programs() -> st.SearchStrategy[SmoothProgram]:
    """A strategy for programs, one draw each (see `random_programs.programs`)."""
    return st.binary(min_size=BYTES, max_size=BYTES).map(smooth_program)
