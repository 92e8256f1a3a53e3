"""Single passes on programs in text form: what they must do, and what they must leave alone.

The results are compared as text, and the interpreters say that the program still means the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch.compiler.typed_program import checked
from pcbatch.errors import InternalError
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.stack import PushJump, StackProgram, Storage
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verifier import verify
from pcbatch.lowering.analysis import block_frequency
from pcbatch.lowering.cfg_passes import copy_propagation, dead_code, forward_destinations, simplify_cfg
from pcbatch.lowering.stack_passes import block_layout, hoist_uniform, lower_calls, register_coalescing, storage_classes
from tests.ir.samples import FIB_STACK, PARITY_CFG, TAIL_STACK, cfg, stack
from tests.oracles.interpret_cfg import interpret_cfg
from tests.oracles.interpret_stack import interpret_stack

Program = CfgProgram | StackProgram


def results(program: Program, *args: Any) -> tuple[Any, ...]:
    """What the program gives for one example."""
    interpret: Any = interpret_cfg if isinstance(program, CfgProgram) else interpret_stack
    return tuple(interpret(program, args)[0])


def after(run: Callable[[Any], Any], program: Any, *examples: tuple[Any, ...]) -> str:
    """The text after a pass, which leaves a valid program that gives the same results."""
    assert verify(program) == ()
    new = run(program)
    assert verify(new) == ()
    for args in examples:
        assert results(new, *args) == results(program, *args)
    return print_program(new)


def function(body: str, types: str = "") -> CfgProgram:
    """One CFG function of n and m."""
    return cfg(f"pcir 1 cfg\nfunc @f(n: i32[], m: i32[]) -> (r: i32[]) {{\n{types}\n{body}\n}}\n")


EXAMPLES = ((0, 5), (3, 1), (-2, 7))


class TestCoalesce:
    """An operation writes where its result is going to be, if nobody can tell."""

    def test_the_result_is_written_at_once(self) -> None:
        text = after(
            forward_destinations.run, function("bb0:\n  t = { n + m }\n  r = t\n  return", "  t: i32[]"), *EXAMPLES
        )
        assert "r = { n + m }" in text and "t = " not in text

    @pytest.mark.parametrize(
        "between",
        ["  r = { n - m }\n", "  m = { r + t }\n", "  m = r\n"],
        ids=["written", "both read", "read"],
    )
    def test_not_past_another_use_of_either(self, between: str) -> None:
        body = f"bb0:\n  r = {{ n * 2 }}\n  t = {{ n + m }}\n{between}  r = t\n  r = {{ r + m }}\n  return"
        assert "t = { n + m }" in after(forward_destinations.run, function(body, "  t: i32[]"), *EXAMPLES)

    def test_not_what_is_read_once_more(self) -> None:
        body = "bb0:\n  t = { n + m }\n  r = t\n  r = { r * t }\n  return"
        assert "t = { n + m }" in after(forward_destinations.run, function(body, "  t: i32[]"), *EXAMPLES)

    def test_not_past_a_push_to_the_slot_of_the_same_name(self) -> None:
        text = TAIL_STACK.replace("  push x\n", "  y = { x + 1 }\n  push x\n  x = y\n")
        program = stack(text.replace("t: bool[] temp", "t: bool[] temp   y: i32[] temp"))
        assert "y = { x + 1 }" in after(forward_destinations.run_stack, program, (3,), (9,))


class TestCopies:
    """A copy stands for its source as long as neither changes."""

    def test_after_the_source_has_changed(self) -> None:
        body = "bb0:\n  r = n\n  n = { n + m }\n  r = { r + n }\n  return"
        assert "r = { r + n }" in after(copy_propagation.run, function(body), *EXAMPLES)

    def test_after_the_copy_has_changed(self) -> None:
        body = "bb0:\n  r = n\n  r = { r * m }\n  r = { r + n }\n  return"
        assert "r = { r + n }" in after(copy_propagation.run, function(body), *EXAMPLES)

    def test_where_only_one_path_made_it(self) -> None:
        body = """\
bb0:
  r = m
  t = { n > 1 }
  branch t, bb1, bb2
bb1:
  r = n
  jump bb2
bb2:
  r = { r + 1 }
  return"""
        assert "r = { r + 1 }" in after(copy_propagation.run, function(body, "  t: bool[]"), *EXAMPLES)

    def test_not_through_a_call(self) -> None:
        """The callee writes r again, so what the first call gave must not be read from there."""
        text = """\
pcir 1 stack
program entry=f in=(x) out=(r) {
  x: i32[] reg   r: i32[] reg   a: i32[] reg   y: i32[] reg
f:
  update y = x
  pushjump g, ret=one
one:
  update a = r
  update y = { x + 1 }
  pushjump g, ret=two
two:
  update r = { a * 10 + r }
  return
g:
  update r = { y * 2 }
  return
}
"""
        assert "{ a * 10 + r }" in after(copy_propagation.run_stack, stack(text), (3,), (9,))


class TestDeadCode:
    """What nobody reads goes, but not what may fail."""

    def test_a_dead_call_stays(self) -> None:
        text = PARITY_CFG.replace("  r = call @even(m)\n", "  r = call @even(m)\n  z = call @odd(m)\n")
        assert "z = call @odd(m)" in after(dead_code.run, cfg(text), (3,), (2,))

    def test_one_live_result_keeps_the_operation(self) -> None:
        body = "bb0:\n  r, m = { n + 1, 7 }\n  return"
        assert "r, m = { n + 1, 7 }" in after(dead_code.run, function(body), *EXAMPLES)


class TestSimplify:
    """Jumps lead past blocks without work, to where those blocks lead."""

    def test_a_second_test_of_the_same_condition(self) -> None:
        body = """\
bb0:
  t = { n > 1 }
  branch t, bb1, bb2
bb1:
  branch t, bb3, bb4
bb2:
  branch t, bb3, bb4
bb3:
  r = { n + m }
  return
bb4:
  r = { n - m }
  return"""
        text = after(simplify_cfg.run, function(body, "  t: bool[]"), *EXAMPLES)
        assert text.count("branch t") == 1 and text.count("bb") == 5

    def test_the_newest_value_of_a_condition_decides(self) -> None:
        body = """\
bb0:
  t = { True }
  r = { n + m }
  u = { r > 3 }
  t = u
  branch t, bb1, bb2
bb1:
  r = { n * 3 }
  return
bb2:
  r = { r + 1 }
  return"""
        text = after(simplify_cfg.run, function(body, "  t, u: bool[]"), *EXAMPLES)
        assert "branch t" in text

    @pytest.mark.parametrize(("value", "kept"), [("True", "{ n * 3 }"), ("False", "{ n + 1 }")])
    def test_a_constant_condition(self, value: str, kept: str) -> None:
        body = f"""\
bb0:
  t = {{ {value} }}
  branch t, bb1, bb2
bb1:
  r = {{ n * 3 }}
  return
bb2:
  r = {{ n + 1 }}
  return"""
        text = after(simplify_cfg.run, function(body, "  t: bool[]"), *EXAMPLES)
        assert kept in text and "branch" not in text

    def test_moves_that_go_on_are_not_a_return(self) -> None:
        body = """\
bb0:
  r = { 0 }
  t = { n > 1 }
  branch t, bb1, bb2
bb1:
  r = { n + m }
  jump bb3
bb2:
  r = { n - m }
  jump bb3
bb3:
  n = m
  m = r
  jump bb4
bb4:
  t = { r < 50 }
  branch t, bb5, return
bb5:
  r = { r + 7 }
  t = { r > 40 }
  branch t, bb3, bb4"""
        after(simplify_cfg.run_tails, function(body, "  t: bool[]"), *EXAMPLES)


class TestCalls:
    """Tail calls, and only they, are jumps."""

    def test_a_tail_call_is_a_jump(self) -> None:
        program = lower_calls.run(cfg(PARITY_CFG))
        assert not [b for b in program.blocks if isinstance(b.terminator, PushJump)]

    @pytest.mark.parametrize("end", ["z = call @even(m)", "r = call @even(m)\n  z = call @odd(m)"])
    def test_an_ignored_call_at_the_end_is_none(self, end: str) -> None:
        program = cfg(PARITY_CFG.replace("  r = call @even(m)\n", f"  r = z\n  {end}\n"))
        lowered = storage_classes.run(lower_calls.run(program))
        assert verify(lowered) == ()
        for n in range(6):
            assert results(lowered, n) == results(program, n)


class TestRegisters:
    """Registers are merged where their values never live together."""

    def test_two_variables_with_frames_keep_their_own(self) -> None:
        text = """\
pcir 1 stack
program entry=f in=(x) out=(r) {
  x: i32[] reg+stack   y: i32[] reg+stack   r: i32[] reg   t: bool[] temp
f:
  t = { x <= 0 }
  branch t, base, deep
base:
  update r = { 1 }
  return
deep:
  push x
  update x = { x - 1 }
  pushjump f, ret=back
back:
  update x = r
  jump middle
middle:
  update y = x
  jump again
again:
  push y
  update x = { 0 }
  pushjump f, ret=last
last:
  pop y
  update r = { y + r }
  jump end
end:
  pop x
  update r = { r * 10 + x }
  return
}
"""
        program = stack(text)
        new = register_coalescing.run(program)
        assert {"x", "y"} <= {v for v, var in new.vars.items() if var.storage is Storage.REG_STACK}
        after(register_coalescing.run, program, (5,), (0,), (2,))

    def test_what_a_half_interferes_with_the_whole_does(self) -> None:
        text = """\
pcir 1 stack
program entry=f in=(x, w) out=(r) {
  x: i32[] reg   w: i32[] reg   a: i32[] reg   b: i32[] reg   r: i32[] reg   t: bool[] temp   u: i32[] temp
f:
  update a = { x + 1 }
  jump g
g:
  update b = a
  update r = { w + 1 }
  jump h
h:
  update b = { b + r }
  t = { b < 9 }
  branch t, h, last
last:
  u = { r * 2 }
  update r = b
  update r = { r + u }
  return
}
"""
        after(register_coalescing.run, stack(text), (1, 3), (30, 2))


class TestShared:
    """Values that are the same for all lanes."""

    def test_a_slot_that_keeps_another_value_is_not_shared(self) -> None:
        text = """\
pcir 1 stack
program entry=f in=(n, u, w) out=(r) {
  n: i32[] reg   u: i32[] reg   w: i32[] reg   x: i32[] reg+stack   r: i32[] reg
f:
  x = u
  push x = w
  update r = { n + x }
  pushjump g, ret=back
back:
  pop x
  update r = { r * x }
  return
g:
  update r = { r + 1 }
  return
}
"""
        text = after(
            lambda p: storage_classes.run(hoist_uniform.run(p, frozenset({"u", "w"}))),
            stack(text),
            (1, 2, 3),
            (4, 0, 5),
        )
        assert "u, w: i32[] shared" in text and "x: i32[] stack" in text

    def test_a_variable_that_two_paths_compute_is_not_shared(self) -> None:
        text = """\
pcir 1 stack
program entry=f in=(n, u) out=(r) {
  n: i32[] reg   u: i32[] reg   v: i32[] reg   t: bool[] temp   r: i32[] reg
f:
  t = { n > 1 }
  branch t, twice, thrice
twice:
  update v = { u * 2 }
  jump end
thrice:
  update v = { u * 3 }
  jump end
end:
  update r = { n + v }
  return
}
"""
        text = after(lambda p: storage_classes.run(hoist_uniform.run(p, frozenset({"u"}))), stack(text), (1, 2), (4, 5))
        assert "n, v, r: i32[] reg   u: i32[] shared" in text


class TestStorage:
    """Where every variable lives."""

    def test_what_is_only_saved_has_no_register(self) -> None:
        text = FIB_STACK.replace("left: i32[] stack", "left: i32[] reg+stack")
        program = storage_classes.run(stack(text))
        assert program.vars["left"].storage is Storage.STACK
        assert program.vars["n"].storage is Storage.REG_STACK and program.vars["t0"].storage is Storage.TEMP


class TestOrder:
    """The order of blocks; it changes no value."""

    def test_the_entry_is_found_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        program = stack(FIB_STACK)
        monkeypatch.setattr(block_layout, "expensive_blocks", lambda _: ("bb0",))
        new = block_layout.run(program, "earliest")
        assert new.entry == new.blocks[-1].label
        assert [results(new, n) for n in range(7)] == [results(program, n) for n in range(7)]

    def test_policies_that_name_one_block_get_source_order(self) -> None:
        """Lanes then wait for each other at later code; a sweep goes on where a return leads."""
        written = stack(FIB_STACK)
        texts = {
            name: [b.ops for b in block_layout.run(written, name).blocks] for name in ("earliest", "largest", "sweep")
        }
        source = [b.ops for b in written.blocks]
        assert texts["earliest"] == texts["largest"] == source
        assert sorted(map(str, texts["sweep"])) == sorted(map(str, source)) and texts["sweep"] != source

    def test_matrix_products_are_dear(self) -> None:
        @pcbatch.batch
        def grow(x, n):
            while n > 0:
                x = x @ np.eye(40, dtype=np.float32)
                n = n - 1
            return x

        assert grow.lower(np.ones((2, 40), np.float32), np.arange(2)).stages.schedule == "drain"
        assert grow.lower(np.ones((2, 4, 40), np.float32)[:, :0], np.arange(2)).stages.schedule == "sweep", "of nothing"

    def test_recursion_is_a_loop(self) -> None:
        assert block_frequency.flow(stack(FIB_STACK))["bb1"] == ["bb3", "bb4"]
        assert set(block_frequency.visits(stack(FIB_STACK)).values()) == {8.0}
        assert set(block_frequency.cycles(stack(FIB_STACK)).values()) == {1, 2}

    def test_inner_loops_run_more_often(self) -> None:
        text = """\
pcir 1 stack
program entry=outer in=(n, m) out=(m) {
  n: i32[] reg   m: i32[] reg   t: bool[] temp
outer:
  t = { n > 0 }
  branch t, inner, return
inner:
  update m = { m + 3 }
  t = { m % 7 > 0 }
  branch t, inner, next
next:
  update n = { n - 1 }
  jump outer
}
"""
        visits = block_frequency.visits(stack(text))
        assert visits["inner"] > visits["outer"] == visits["next"]


def test_the_verifier_stops_a_broken_pass() -> None:
    program = stack(FIB_STACK.replace("  push n = n0\n", ""))
    with pytest.raises(InternalError, match=r"after dce:\n.*pop n without a push.*\[slot\]"):
        checked(program, "dce")
