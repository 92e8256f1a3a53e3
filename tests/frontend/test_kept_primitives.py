"""Tests of the functions of primitives that are kept while a compilation starts again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch.frontend.build import kept_primitives, primitives
from pcbatch.frontend.build.kept_primitives import FACTS, keeping_primitives, made_once
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.frontend.source.rewrites.simple_words import in_simple_words


class Watched:
    """A unit that notes which of its attributes are read."""

    read: set[str] = set()

    def __init__(self, unit: Any) -> None:
        self._unit = unit

    def __getattr__(self, name: str) -> Any:
        self.read.add(name)
        return getattr(self._unit, name)


def is_odd(n: Any) -> Any:
    return n % 2 == 1


class Counter:
    def __init__(self, start: Any) -> None:
        self.value = start

    def add(self, n: Any) -> None:
        self.value += n


def program(xs: Any, key: Any) -> Any:
    counter, found, names = Counter(0), {}, ["a", "b"]
    for k, x in enumerate(xs):
        if is_odd(x) and not x == 3:
            counter.add(x)
        found[x] = found.get(x, 0) + max(k, 1)
    try:
        rest = [abs(x) for x in reversed(xs) if x in found] + [len(names)]
    except KeyError as error:
        raise ValueError(f"{error}") from None
    pairs = {k: (lambda y: y + k)(v) for k, v in found.items()}
    return counter.value, sum(rest), pairs[xs[0]], min(range(3), key=lambda j: (j - key) ** 2), -(key**2)


def test_making_a_primitive_reads_only_the_facts_by_which_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    plainly = primitives._compile
    monkeypatch.setattr(primitives, "_compile", lambda unit, *rest: plainly(Watched(unit), *rest))
    Watched.read.clear()
    pcbatch.batch(program)([jnp.arange(4), jnp.arange(4) + 2, jnp.arange(4)], jnp.arange(4))
    assert set(FACTS) >= Watched.read
    assert {"fn", "statics"} <= Watched.read


def test_most_primitives_are_made_once_in_a_compilation_that_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, made = [], []
    once, plainly = kept_primitives.made_once, primitives._compile

    def counted(*args: Any) -> Any:
        asked.append(args)
        return once(*args)

    def compiled(*args: Any) -> Any:
        made.append(args)
        return plainly(*args)

    monkeypatch.setattr(primitives, "made_once", counted)
    monkeypatch.setattr(primitives, "_compile", compiled)
    pcbatch.batch(program)([jnp.arange(4), jnp.arange(4) + 2, jnp.arange(4)], jnp.arange(4))
    assert len(made) < len(asked) * 2 / 3


def scaled(x: Any) -> Any:
    return x * 2


def mapped(xs: Any) -> Any:
    return list(map(scaled, xs))


def test_what_is_asked_of_the_callees_has_to_be_answered_the_same() -> None:
    target = Target(scaled)
    answers: list[Target | None] = [None, None, target, target, None]
    made = []

    def make(unit: Unit) -> Any:
        made.append(unit.batched(scaled))
        return lambda: None

    with keeping_primitives():
        unit = in_simple_words(mapped, Helpers(lambda value: None), {}, Target(mapped))
        found = [
            made_once(replace(unit, batched=lambda value, answer=answer: answer), unit.body[0].value, ("xs",), 1, make)
            for answer in answers
        ]
    assert made == [None, target]
    assert found == [found[0], found[0], found[2], found[2], found[0]]
    assert found[0] is not found[2]


def test_zeros_of_either_sign_are_two_primitives() -> None:
    def signs(x: Any) -> Any:
        a, b = x * 0.0, x * -0.0
        return 1 / (a + jnp.inf) if x > 0 else a, b

    a, b = pcbatch.batch(signs)(jnp.array([-1.0, -2.0]))
    assert bool(jnp.all(jnp.signbit(a)))
    assert not bool(jnp.any(jnp.signbit(b)))
