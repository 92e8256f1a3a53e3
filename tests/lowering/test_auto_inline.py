"""Calls that are replaced by the body of the callee without being asked for."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verifier import verify
from pcbatch.lowering.cfg_passes import auto_inline
from tests.ir.samples import PARITY_CFG, cfg
from tests.lowering.typed import typed
from tests.oracles.interpret_cfg import interpret_cfg

HALF = """
func @half(x: i32[]) -> (y: i32[]) {
  t: bool[]
bb0:
  t = { x > 3 }
  branch t, bb1, bb2
bb1:
  y = { x // 2 }
  return
bb2:
  y = x
  return
}
"""

LOOP = """
func @half(x: i32[]) -> (y: i32[]) {
  t: bool[]
bb0:
  y = x
  jump bb1
bb1:
  t = { y > 3 }
  branch t, bb2, return
bb2:
  y = { y // 2 }
  jump bb1
}
"""


def inlined(text: str) -> CfgProgram:
    """The program after the pass, which gives the same results."""
    old = typed(cfg(text))
    assert verify(old) == ()
    new = auto_inline.run(old)
    assert verify(new) == (), print_program(new)
    for n in (0, 3, 9, 20):
        (want,), (found,) = interpret_cfg(old, [n])[0], interpret_cfg(new, [n])[0]
        assert bool(want == found), print_program(new)
    return new


def caller(calls: int) -> str:
    """A function that calls `half` so many times."""
    body = "".join(f"  n = call @half(n)\n  n = {{ n + {k} }}\n" for k in range(calls))
    return f"pcir 1 cfg\nfunc @f(n: i32[]) -> (n: i32[]) {{\nbb0:\n{body}  return\n}}\n"


def functions(program: CfgProgram) -> list[str]:
    """The functions that are left."""
    return [function.name for function in program.functions]


@pytest.mark.parametrize("body", [HALF, LOOP], ids=["branch", "loop"])
def test_what_is_called_once_moves(body: str) -> None:
    new = inlined(caller(1) + body)
    assert functions(new) == ["f"]
    types = new.functions[0].types
    assert str(types["half.t"]) == "bool[]" and str(types["half.x"]) == "i32[]"


def test_what_is_small_is_copied() -> None:
    assert functions(inlined(caller(3) + HALF)) == ["f"]


def test_not_to_many_places() -> None:
    assert functions(inlined(caller(40) + HALF)) == ["f", "half"]


def test_a_loop_stays_in_one_place() -> None:
    """Lanes in two copies of it would not run together."""
    assert functions(inlined(caller(2) + LOOP)) == ["f", "half"]


def test_what_is_dear_stays_in_one_place() -> None:
    dear = HALF.replace("{ x // 2 }", "{ jnp.sort(x - jnp.arange(99))[9] } reads (x)")
    assert functions(inlined(caller(2) + dear)) == ["f", "half"]


def test_recursion_stays() -> None:
    new = inlined(PARITY_CFG)
    assert functions(new) == ["even", "odd"]


def test_a_callee_is_judged_with_what_it_holds() -> None:
    middle = "func @half(x: i32[]) -> (x: i32[]) {\nbb0:\n  x = call @inner(x)\n  return\n}\n"
    inner = LOOP.replace("@half", "@inner")
    assert functions(inlined(caller(2) + middle + inner)) == ["f", "half"]


def test_fewer_frames_are_needed_and_messages_are_the_same() -> None:
    @pcbatch.batch
    def checked(n):
        assert n >= 0, f"{n} is negative"
        return n * 2

    @pcbatch.batch
    def f(n):
        return checked(n) + 1

    lowered = f.lower(jnp.arange(3))
    assert lowered.as_text("cfg").count("call @") == 1 and "call" not in lowered.as_text("stack")
    with pytest.raises(pcbatch.BatchRuntimeError) as info:
        f(jnp.array([1, -4]))
    assert "assert n >= 0" in str(info.value) and "1 (n=-4" in str(info.value)
    assert "-4 is negative" in str(info.value)


WEIGHTS = """pcir 1 cfg
func @f(a: f32[32,32], b: f32[32,32], n: i32[]) -> (y: i32[]) {
  x: i32[]
  z: i32[]
  t: bool[]
bb0:
  ASSIGN
  x = call @rnn(a, n)
  z = call @rnn(OTHER, x)
  y = z
  return
}

func @rnn(w: f32[32,32], n: i32[]) -> (y: i32[]) {
  t: bool[]
bb0:
  y = n
  jump bb1
bb1:
  t = { y > 3 + w[0, 0].astype(jnp.int32) }
  branch t, bb2, return
bb2:
  y = { y // 2 }
  jump bb1
}
"""

TWO_CALLS = """t = { n > 30 }
  branch t, bb1, bb2
bb1:
  x = { n // 2 }
  x = call @f(a, b, x)
  z = call @f(a, b, x)
  jump bb2
bb2:"""


@pytest.mark.parametrize(
    ("other", "assign", "left"),
    [("b", "", ["f"]), ("a", "", ["f", "rnn"]), ("b", "b = a", ["f", "rnn"]), ("b", TWO_CALLS, ["f"])],
    ids=["each its own", "the same", "assigned", "the same in each activation"],
)
def test_functions_with_large_constants_of_each_call_are_copied(other, assign, left):
    text = WEIGHTS.replace("OTHER", other).replace("  ASSIGN\n", f"  {assign}\n" if assign else "")
    old = typed(cfg(text))
    new = auto_inline.run(old)
    assert verify(new) == (), print_program(new)
    assert [function.name for function in new.functions] == left
    weights = jnp.zeros((32, 32)), jnp.ones((32, 32))
    assert interpret_cfg(new, [*weights, 50])[0] == interpret_cfg(old, [*weights, 50])[0]
