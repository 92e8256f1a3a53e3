"""Small functions that call themselves hold a copy of their body in place of each of these calls."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.cfg import Call, CfgProgram
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verifier import verify
from pcbatch.lowering.cfg_passes import unroll_recursion
from pcbatch.lowering.left_out import without
from tests.ir.samples import cfg
from tests.lowering.typed import typed
from tests.oracles.interpret_cfg import interpret_cfg

FIB = """
pcir 1 cfg
func @fib(n: i32[]) -> (r: i32[]) {
  t: bool[]
  a: i32[]
  b: i32[]
  s: i32[]
bb0:
  t = { n < 2 }
  branch t, bb1, bb2
bb1:
  r = n
  return
bb2:
  a = { n - 1 }
  b = { n - 2 }
  r = call @fib(a)
  s = call @fib(b)
  r = { r + s }
  return
}
"""

EVEN = """
pcir 1 cfg
func @even(n: i32[]) -> (r: bool[]) {
  t: bool[]
  a: i32[]
bb0:
  t = { n == 0 }
  branch t, bb1, bb2
bb1:
  r = { n == 0 }
  return
bb2:
  a = { n - 1 }
  r = call @odd(a)
  return
}
func @odd(n: i32[]) -> (r: bool[]) {
  t: bool[]
  a: i32[]
bb0:
  t = { n == 0 }
  branch t, bb1, bb2
bb1:
  r = { n != 0 }
  return
bb2:
  a = { n - 1 }
  r = call @even(a)
  return
}
"""


def calls(program: CfgProgram) -> Counter[str]:
    """The calls of each function, by name."""
    return Counter(op.func for function in program.functions for op in function.ops if isinstance(op, Call))


def test_each_call_of_itself_is_a_copy_of_the_body() -> None:
    old = typed(cfg(FIB))
    new = unroll_recursion.run(old)
    assert verify(new) == (), print_program(new)
    assert calls(new) == {"fib": 4}
    for n in (0, 1, 2, 3, 7, 10):
        (want,), (found,) = interpret_cfg(old, [n])[0], interpret_cfg(new, [n])[0]
        assert bool(want == found), print_program(new)


def test_functions_that_call_each_other_stay() -> None:
    old = typed(cfg(EVEN))
    assert unroll_recursion.run(old) == old


def test_large_bodies_and_loops_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    old = typed(cfg(FIB))
    monkeypatch.setattr(unroll_recursion, "MOST_OPS", 10)
    assert unroll_recursion.run(old) == old
    monkeypatch.undo()
    monkeypatch.setattr(unroll_recursion, "MOST_CALLS", 1)
    assert unroll_recursion.run(old) == old


@pcbatch.batch
def deep(n: Any) -> Any:
    """Fail at the bottom of some lanes."""
    assert n != 3, f"at {n}"
    return 0 if n == 0 else 2 + deep(n - 4)


def test_results_and_failures_of_lanes_one_after_the_other() -> None:
    numbers = jnp.array([0, 4, 8, 11, 40, 7])
    found = deep.run(numbers)
    with without("unroll_recursion"):
        want = deep.with_options().run(numbers)
    assert np.asarray(found.status).tolist() == np.asarray(want.status).tolist()
    good = np.asarray(want.status) == 0
    assert np.asarray(found.value)[good].tolist() == [0, 2, 4, 20]
    with pytest.raises(pcbatch.BatchRuntimeError, match="at 3"):
        deep(numbers)


def test_a_limit_of_depth_counts_calls() -> None:
    limited = deep.with_options(max_depth=5)
    status = np.asarray(limited.run(jnp.array([20, 24, 28])).status)
    assert [pcbatch.Status(s).name for s in status] == ["OK", "OK", "STACK_FULL"]
