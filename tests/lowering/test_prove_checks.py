"""Checks that a test before makes needless are removed, and no others."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import pcbatch
from pcbatch import Status
from pcbatch.ir.ops import Check
from pcbatch.lowering.analysis.reference_facts import ANY, holds, learned, met
from pcbatch.lowering.cfg_passes import prove_checks


class Node(NamedTuple):
    left: Any
    word: int


class Other(NamedTuple):
    left: Any


def leaf(word: int = 1) -> Node:
    return Node(None, word)


OBJECTS = [leaf(2), Node(leaf(3), 4), Node(Other(leaf()), 5), Node(Other(None), 6)]


def left(fn: Any) -> int:
    """The number of checks that are left in a function over `OBJECTS`."""
    cfg = pcbatch.batch(fn).lower(pcbatch.pack(OBJECTS)).stages.cfg
    program = prove_checks.run(cfg)
    return sum(isinstance(op, Check) for f in program.functions for block in f.blocks for op in block.ops)


def guarded(n):
    return n.left.left is None if n.left is not None else False


def guarded_in_a_variable(n):
    below = n.left
    if below is None:
        return False
    return below.left is None


def guarded_class(n):
    return n.left.word if isinstance(n.left, Node) else n.word


def loop(n):
    m = n.left
    while m is not None:
        m = m.left
    return n.word


def unguarded(n):
    return n.left.left is None


def the_other_way(n):
    return n.left.left is None if n.left is None else False


def changed_after_the_test(n):
    m = n.left
    if m is None:
        return False
    m = m.left
    return m.left is None


def guarded_on_one_way(n):
    if n.word > 3 and n.left is None:
        return False
    return n.left.left is None


def changed_in_a_loop(n):
    m = n.left
    if m is None:
        return False
    for _ in range(n.word - 3):
        m = m.left
    return m is None


def only_not_none(n):
    return n.left.word if n.left is not None else n.word


@pytest.mark.parametrize("fn", [guarded, guarded_in_a_variable, guarded_class, loop], ids=lambda fn: fn.__name__)
def test_needless(fn: Any) -> None:
    assert left(fn) == 0


NEEDED = [unguarded, the_other_way, changed_after_the_test, guarded_on_one_way, changed_in_a_loop, only_not_none]


@pytest.mark.parametrize("fn", NEEDED, ids=lambda fn: fn.__name__)
def test_needed(fn: Any) -> None:
    """Each of these fails for an object with AttributeError, in plain Python as in its lane."""
    assert left(fn) > 0
    statuses = pcbatch.batch(fn).run(pcbatch.pack(OBJECTS)).status
    for status, node in zip(statuses.tolist(), OBJECTS, strict=True):
        try:
            fn(node)
        except AttributeError:
            assert status == Status.ERROR
        else:
            assert status == Status.OK


def test_parameters_have_what_all_calls_have() -> None:
    @pcbatch.batch
    def below(m):
        return 0 if m is None else m.word

    @pcbatch.batch
    def word(m):
        return m.word

    chain = Node(leaf(3), 4)

    def checks(fn: Any) -> int:
        program = prove_checks.run(pcbatch.batch(fn).lower(pcbatch.pack([chain])).stages.cfg)
        return sum(isinstance(op, Check) for f in program.functions for block in f.blocks for op in block.ops)

    def guarded(n):
        return word(n.left) if n.left is not None else below(n.left)

    def once(n):
        return (word(n.left) if n.left is not None else 0) + word(n.left)

    assert checks(guarded) == 0
    assert checks(once) > 0


X, ZERO, FIVE = ("var", "x"), ("lit", 0), ("lit", 5)
INT, BOOL = ("", "int32"), ("", "bool")


def test_facts() -> None:
    facts: dict[Any, Any] = {}
    learned(("and", BOOL, ("ge", INT, X, ZERO), ("lt", INT, X, FIVE)), True, facts)
    assert facts == {X: (0, 4)}
    assert holds(("le", INT, X, ("lit", 4)), facts) is True
    assert holds(("eq", INT, X, FIVE), facts) is False
    assert holds(("lt", INT, X, ("lit", 4)), facts) is None
    assert holds(("not", BOOL, ("gt", INT, ZERO, X)), facts) is True
    assert met(facts, {X: (2, 9)}) == {X: (0, 9)}
    assert met(facts, {}) == {}
    learned(("or", BOOL, ("ge", INT, X, FIVE), ("lt", INT, X, ("lit", 2))), True, facts)
    assert facts == {X: (0, 1)}
    unknown: dict[Any, Any] = {}
    learned(("and", BOOL, ("ge", INT, X, ZERO), ("lt", INT, X, FIVE)), False, unknown)
    assert unknown.get(X, ANY) == ANY
