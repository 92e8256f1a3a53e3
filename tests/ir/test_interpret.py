"""The reference interpreters on programs whose answers and counts are known."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.errors import InternalError
from pcbatch.ir.cfg import Block, CfgProgram, Function
from pcbatch.ir.interpret import LaneFailed, StepLimit
from pcbatch.ir.ops import Expr, Prim, Return
from tests.ir.samples import (
    CHAIN_CFG,
    FAIL_CFG,
    FAIL_STACK,
    FIB_CFG,
    FIB_STACK,
    FORK_STACK,
    GCD_CFG,
    GCD_STACK,
    PARITY_CFG,
    TAIL_STACK,
    cfg,
    stack,
)
from tests.oracles.interpret_cfg import StackFull, interpret_cfg
from tests.oracles.interpret_stack import interpret_stack


def fib(n: int) -> int:
    return 1 if n <= 1 else fib(n - 2) + fib(n - 1)


@pytest.mark.parametrize("number", [int, np.int32, jnp.int32])
def test_fib_both_ways(number):
    for n in range(8):
        assert interpret_cfg(cfg(FIB_CFG), [number(n)])[0] == (fib(n),)
        assert interpret_stack(stack(FIB_STACK), [number(n)])[0] == (fib(n),)


def test_counts_of_fib():
    _, trace = interpret_stack(stack(FIB_STACK), [14])
    assert trace.pushes == trace.pops == 2 * 609 == 1218
    assert trace.texts["left + r"] == trace.blocks["bb4"] == 609
    assert trace.pushjumps == 1218
    assert trace.max_depth == 13
    _, called = interpret_cfg(cfg(FIB_CFG), [14])
    assert (called.pushjumps, called.max_depth, called.pushes) == (1218, 13, 0)
    assert called.blocks["fib:bb2"] == called.texts["left + right"] == 609


@pytest.mark.parametrize(("a", "b"), [(12, 18), (18, 12), (7, 0), (0, 0), (17, 5)])
def test_gcd_both_ways(a, b):
    assert interpret_cfg(cfg(GCD_CFG), [a, b])[0] == (math.gcd(a, b),)
    assert interpret_stack(stack(GCD_STACK), [a, b])[0] == (math.gcd(a, b),)


def test_calls_between_functions():
    assert [interpret_cfg(cfg(PARITY_CFG), [n])[0][0] for n in range(4)] == [False, True, False, True]
    assert interpret_cfg(cfg(CHAIN_CFG), [1.5])[0] == (6.0,)


def test_prologue_tail_jumps_and_slots():
    def plain(x: int) -> int:
        while x > 3:
            x -= x // 2
        return x // 2

    for x in range(40):
        (result,), trace = interpret_stack(stack(TAIL_STACK), [x])
        assert result == plain(x)
        assert trace.max_depth <= 1


def test_a_fork_goes_one_way():
    program = stack(FORK_STACK)
    for x, want, depth in ((1, 2, 0), (5, 11, 1), (12, 13, 0)):
        (result,), trace = interpret_stack(program, [x])
        assert (result, trace.max_depth) == (want, depth)
    assert interpret_stack(program, [12], max_depth=0)[0] == (13,), "only the way that calls needs a frame"
    with pytest.raises(StackFull):
        interpret_stack(program, [5], max_depth=0)


def test_limits():
    with pytest.raises(StackFull):
        interpret_stack(stack(FIB_STACK), [10], max_depth=8)
    with pytest.raises(StackFull):
        interpret_cfg(cfg(FIB_CFG), [10], max_depth=8)
    assert interpret_stack(stack(FIB_STACK), [10], max_depth=9)[1].max_depth == 9
    with pytest.raises(StepLimit):
        interpret_stack(stack(FIB_STACK), [10], max_steps=100)
    with pytest.raises(StepLimit):
        interpret_cfg(cfg(FIB_CFG), [10], max_calls=100)
    with pytest.raises(StepLimit):
        interpret_cfg(cfg(GCD_CFG), [12, 18], max_steps=3)


@pytest.mark.parametrize(
    ("interpret", "program"), [(interpret_cfg, cfg(FAIL_CFG)), (interpret_stack, stack(FAIL_STACK))]
)
@pytest.mark.parametrize("number", [float, np.float32, jnp.float32])
def test_failures_and_prints(interpret, program, number, capsys):
    assert interpret(program, [number(3)])[0] == (6,)
    assert capsys.readouterr().out == "x = 3.000\n"
    with pytest.raises(LaneFailed) as low:
        interpret(program, [number(-1)])
    assert (low.value.kind, low.value.name, low.value.message) == ("assertion", "AssertionError", "")
    with pytest.raises(LaneFailed, match="ValueError: half of // { *500.0 is     250.0\u2028") as bad:
        interpret(program, [number(500)])
    assert (bad.value.kind, bad.value.name) == ("error", "ValueError")


def test_deep_recursion_does_not_use_the_python_stack():
    assert interpret_cfg(cfg(PARITY_CFG), [20_001])[0] == (True,)


def test_functions_of_expressions_come_first():
    two = Prim(("a", "b"), Expr("not this", ("x",), lambda x: (x + 1, x + 2)))
    none = Prim((), Expr("nor this", (), lambda: ()))
    function = Function("f", ("x",), ("b", "a"), (Block("bb0", (two, none), Return()),))
    assert interpret_cfg(CfgProgram("f", (function,)), [1])[0] == (3, 2)


def test_texts_see_the_namespace():
    program = cfg("pcir 1 cfg\nfunc @f(s.x: ?) -> (y: ?) {\nbb0:\n  y = { jnp.sin(s.x) }\n  return\n}\n")
    assert interpret_cfg(program, [0.0], {"jnp": jnp})[0] == (0.0,)
    with pytest.raises(NameError):
        interpret_cfg(program, [0.0])


def test_select_takes_one_side():
    text = "pcir 1 cfg\nfunc @f(c: ?, x: ?, y: ?) -> (z: ?) {\nbb0:\n  z = select c, x, y\n  return\n}\n"
    assert interpret_cfg(cfg(text), [True, 1, 2])[0] == (1,)
    assert interpret_cfg(cfg(text), [False, 1, 2])[0] == (2,)


def test_a_lost_value_is_found():
    with pytest.raises(InternalError, match="n0 is read before it is written"):
        interpret_stack(stack(FIB_STACK.replace("n - 1 }", "n0 - 1 }")), [3])
    with pytest.raises(InternalError, match="pop n: its slot is empty"):
        interpret_stack(stack(FIB_STACK.replace("  push n = n0\n", "")), [3])
    with pytest.raises(InternalError, match="not a Python expression"):
        interpret_stack(stack(FIB_STACK.replace("{ n <= 1 }", "{ n <= } reads (n)")), [3])
