"""Copying blocks into those that go there, and threading jumps of the merged program, on programs in text form."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace

import pytest

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.analysis.def_use import calls
from pcbatch.ir.forks import Fork
from pcbatch.ir.stack import PushJump, StackProgram
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verifier import verify
from pcbatch.lowering.cfg_passes import copy_propagation, dead_code
from pcbatch.lowering.stack_passes import block_layout, simplify_stack, storage_classes, superblocks
from tests.ir.samples import FIB_STACK, GCD_STACK, TAIL_STACK, stack
from tests.lowering.typed import typed
from tests.oracles.interpret_cfg import Trace
from tests.oracles.interpret_stack import interpret_stack


def grafted(text: str, *examples: tuple[int, ...]) -> StackProgram:
    """The program after the pass, which gives the same results with no more blocks run and no more frames opened."""
    old = typed(stack(text))
    assert verify(old) == ()
    new = storage_classes.run(superblocks.run(old, rounds=1))
    assert verify(new) == (), print_program(new)
    for args in examples:
        before, after = run(old, args), run(new, args)
        assert after[0] == before[0], (args, print_program(new))
        assert sum(after[1].blocks.values()) <= sum(before[1].blocks.values())
        assert after[1].max_depth <= before[1].max_depth
    return new


def run(program: StackProgram, args: tuple[int, ...]) -> tuple[tuple[list[int], str], Trace]:
    """The results of one example and what it prints; what the interpreter counts."""
    with contextlib.redirect_stdout(io.StringIO()) as written:
        results, trace = interpret_stack(program, args)
    return (list(map(int, results)), written.getvalue()), trace


def body(program: StackProgram) -> str:
    """The blocks as text, without declarations."""
    lines = print_program(program).splitlines()
    first = next(k for k, line in enumerate(lines) if line.endswith(":") and not line.startswith(" "))
    return "\n".join(line for line in lines[first:-1] if not line.startswith("//"))


def labels(program: StackProgram) -> list[str]:
    """The blocks that there are."""
    return [block.label for block in program.blocks]


def program(blocks: str, variables: str, head: str = "in=(n, m) out=(r)") -> str:
    """A stack program of n and m that gives r."""
    return f"pcir 1 stack\nprogram entry=bb0 {head} {{\n{variables}\n{blocks}\n}}\n"


PAIRS = tuple((n, m) for n in (-2, 0, 1, 3, 6) for m in (0, 1, 5))


class TestAfterTheOnlyWay:
    """Tail duplication: nothing is computed that the lane would not compute anyway."""

    def test_a_loop_is_one_block_with_its_test_at_its_end(self) -> None:
        new = grafted(GCD_STACK, (12, 18), (7, 0), (0, 3))
        assert body(new) == (
            "head:\n"
            "  t = { b != 0 }\n"
            "  branch t, body, return\n"
            "body:\n"
            "  c = a\n"
            "  update a = b\n"
            "  update b = { c % b }\n"
            "  t = { b != 0 }\n"
            "  branch t, body, return"
        )

    def test_a_callee_that_returns_at_once_opens_no_frame(self) -> None:
        new = grafted(TAIL_STACK, (0,), (5,), (40,))
        assert labels(new) == ["f", "deep", "g"]  # what follows a loop stays outside
        assert not any(calls(block.terminator) for block in new.blocks)
        assert "pop" not in print_program(new)
        assert "push" not in print_program(dead_code.run_stack(copy_propagation.run_stack(new)))

    def test_a_block_that_both_ways_end_in(self) -> None:
        new = grafted(
            program(
                "bb0:\n  t = { n > m }\n  branch t, bb1, bb2\n"
                "bb1:\n  update r = { jnp.sum(n + jnp.arange(90)) } reads (n)\n  jump bb3\n"
                "bb2:\n  update r = { jnp.sum(m - jnp.arange(90)) } reads (m)\n  jump bb3\n"
                "bb3:\n  update r = { r + n }\n  return",
                "  n, m, r: i32[] reg   t: bool[] temp",
            )
            .replace("jnp.arange(n, n + 40)", "n + jnp.arange(90)")
            .replace("jnp.arange(m, m + 40)", "m + jnp.arange(90)"),
            *PAIRS,
        )
        assert labels(new) == ["bb0", "bb1", "bb2"]

    @pytest.mark.parametrize(
        "last", ['  print("r = ", r)\n  return', '  update r = { r * 2 }\n  fail error ValueError("r = ", r)']
    )
    def test_prints_and_failures_are_not_copied(self, last: str) -> None:
        text = program(
            "bb0:\n  t = { n > m }\n  update r = n\n  branch t, bb1, bb2\n"
            "bb1:\n  update r = { n + 1 }\n  jump bb3\n"
            "bb2:\n  update r = { n - 1 }\n  u = { n > 2 }\n  branch u, bb3, return\n"
            f"bb3:\n{last}",
            "  n, m, r: i32[] reg   t, u: bool[] temp",
        )
        new = grafted(text, *(PAIRS if "print" in last else ()))
        assert print_program(new).count(last) == 1

    def test_what_is_dear_is_not_copied(self) -> None:
        dear = "{ jnp.sort(n + jnp.arange(99))[m] } reads (n, m)"
        text = program(
            "bb0:\n  t = { n > m }\n  branch t, bb1, bb2\n"
            f"bb1:\n  update n = {dear}\n  jump bb3\nbb2:\n  update m = {{ m - n }}\n  u = {{ m > 3 }}\n"
            f"  branch u, bb3, return\nbb3:\n  update r = {dear}\n  return",
            "  n, m, r: i32[] reg   t, u: bool[] temp",
        ).replace("  t = { n > m }\n", "  t = { n > m }\n  update r = n\n")
        assert print_program(grafted(text, *PAIRS)).count("jnp.sort") == 2


class TestSlots:
    """A slot is popped once, pushed once, and popped first, also where two blocks become one."""

    CALLS = "f:\n  update r = { n + m }\n  return"

    def test_what_the_block_itself_has_pushed_is_not_popped(self) -> None:
        text = program(
            "bb0:\n  push n\n  update n = { n * 2 }\n  pushjump f, ret=bb1\n"
            "bb1:\n  pop n\n  update r = { r - n }\n  return\n" + self.CALLS,
            "  n: i32[] reg+stack   m, r: i32[] reg",
        )
        new = grafted(text, *PAIRS)
        assert labels(new) == ["bb0"] and "pop" not in body(new)
        assert "push" not in body(dead_code.run_stack(new))

    def test_the_last_push_counts(self) -> None:
        text = program(
            "bb0:\n  push n\n  update n = { n * 2 }\n  pushjump f, ret=bb1\n"
            "bb1:\n  pop n\n  update n = { n + 1 }\n  push n = r\n  t = { r > 3 }\n  branch t, bb2, bb3\n"
            "bb2:\n  update n = { n + 7 }\n  update m = { jnp.sum(n + jnp.arange(99)) } reads (n)\n  jump bb3\n"
            "bb3:\n  update r = { jnp.sum(m + jnp.arange(99)) } reads (m)\n  pop n\n  update r = { r - n }\n  return\n"
            + self.CALLS,
            "  n: i32[] reg+stack   m, r: i32[] reg   t: bool[] temp",
        )
        new = grafted(text, *PAIRS)
        assert [body(new).count(word) for word in ("push n", "pop n")] == [1, 1]

    def test_a_slot_that_another_way_needs_is_not_pushed(self) -> None:
        text = program(
            "bb0:\n  push n\n  update r = { n + 1 }\n  update n = { n - m }\n  t = { n > m }\n  branch t, bb1, bb2\n"
            "bb1:\n  push n = r\n  update m = { m + 1 }\n  jump bb2\n"
            "bb2:\n  update r = { jnp.sum(m + jnp.arange(99)) } reads (m)\n  pop n\n  update r = { r - n }\n  return",
            "  n: i32[] reg+stack   m, r: i32[] reg   t: bool[] temp",
        )
        assert "bb1" in labels(grafted(text, *PAIRS))

    def test_a_pop_of_a_variable_that_others_need(self) -> None:
        text = program(
            "bb0:\n  push n\n  update n = { n * 2 }\n  t = { n > m }\n  branch t, bb1, bb2\n"
            "bb1:\n  pop n\n  update r = { n + 1 }\n  return\n"
            "bb2:\n  update r = { jnp.sum(n + jnp.arange(99)) } reads (n)\n  return",
            "  n: i32[] reg+stack   m, r: i32[] reg   t: bool[] temp",
        )
        assert labels(grafted(text, *PAIRS)) == ["bb0", "bb2"]


class TestSpeculation:
    """What is computed for lanes that go elsewhere leaves no trace in them."""

    def test_the_base_case_of_a_call_is_peeled(self) -> None:
        first = stack(FIB_STACK)
        here = [Loc("fib.py", 3, column, 3, column + 9) for column in (9, 22)]
        places = iter(here)
        blocks = tuple(
            replace(b, terminator=replace(b.terminator, loc=next(places))) if isinstance(b.terminator, PushJump) else b
            for b in first.blocks
        )
        new = storage_classes.run(copy_propagation.run_stack(superblocks.run(typed(replace(first, blocks=blocks)))))
        assert verify(new) == ()
        assert body(block_layout.run(storage_classes.run(dead_code.run_stack(new)), "sweep")) == (
            "bb0:\n"
            "  t0 = { n <= 1 }\n"
            "  update r = { 1 }\n"
            "  branch t0, return, bb1\n"
            "bb1:\n"
            "  n0 = n\n"
            "  update n = { n - 2 }\n"
            "  push n = n0\n"
            "  t0 = { n <= 1 }\n"
            "  update r = { 1 }\n"
            "  branch t0, bb2, call bb1 ret=bb2\n"
            "bb2:\n"
            "  pop n\n"
            "  update n = { n - 1 }\n"
            "  left.t0 = r\n"
            "  push left = r\n"
            "  t0 = { n <= 1 }\n"
            "  update r = { 1 }\n"
            "  update r = { left.t0 + r }\n"
            "  branch t0, return, call bb1 ret=bb3\n"
            "bb3:\n"
            "  pop left\n"
            "  update r = { left + r }\n"
            "  return"
        )
        for n, want in ((0, 1), (1, 1), (2, 2), (9, 55)):
            (value,), trace = interpret_stack(new, [n])
            assert int(value) == want
            assert trace.max_depth == max(0, n - 2)  # n = 1 and n = 0 need no frame

    def test_no_block_has_calls_at_two_places(self) -> None:
        """A lane that finds the stack full could not say which of them it was to make."""
        text = program(
            "bb0:\n  t = { n > m }\n  push n\n  branch t, bb1, bb2\nbb1:\n  pushjump f, ret=bb3\n"
            "bb2:\n  update n = { n + 1 }\n  pushjump f, ret=bb3\n"
            "bb3:\n  pop n\n  update r = { r + n }\n  return\n"
            "f:\n  update r = { jnp.sum(m + jnp.arange(99)) } reads (m)\n  update n = m\n  return",
            "  n: i32[] reg+stack   m, r: i32[] reg   t: bool[] temp",
        )
        assert len(grafted(text, *PAIRS).blocks) < 5
        apart = stack(text)
        blocks = tuple(
            replace(b, terminator=replace(b.terminator, loc=Loc("f.py", k, 1, k, 9)))
            if isinstance(b.terminator, PushJump)
            else b
            for k, b in enumerate(apart.blocks)
        )
        new = superblocks.run(typed(replace(apart, blocks=blocks)))
        assert {"bb1", "bb2"} & set(labels(new))
        assert all(len({call.loc for call in calls(b.terminator)}) <= 1 for b in new.blocks)

    def test_an_old_value_is_kept_for_the_others(self) -> None:
        text = program(
            "bb0:\n  t = { n > m }\n  update r = { n * m }\n  branch t, bb1, bb2\n"
            "bb1:\n  update r = { r - 5 }\n  update n = { n + 1 }\n  jump bb2\n"
            "bb2:\n  u = { m > 2 }\n  branch u, bb3, return\n"
            "bb3:\n  update r = { jnp.sum(r + n + jnp.arange(99)) } reads (r, n)\n  return",
            "  n, m, r: i32[] reg   t, u: bool[] temp",
        )
        new = grafted(text, *PAIRS)
        assert labels(new) == ["bb0", "bb3"]
        assert "select t, r, r.t0" in body(new)

    def test_conditions_are_read_as_they_were(self) -> None:
        """The copy writes the condition that decides whether it was meant."""
        text = program(
            "bb0:\n  update t = { n > m }\n  update r = { n * m }\n  branch t, bb1, bb2\n"
            "bb1:\n  update t = { r > 3 }\n  update r = { r + 1 }\n  branch t, bb2, return\n"
            "bb2:\n  update r = { jnp.sum(r + jnp.where(t, n, m) + jnp.arange(99)) } reads (r, t, n, m)\n  return",
            "  n, m, r: i32[] reg   t: bool[] reg",
        )
        new = grafted(text, *PAIRS)
        assert labels(new) == ["bb0", "bb2"]

    def test_a_path_of_several_conditions(self) -> None:
        text = program(
            "bb0:\n  t = { n > m }\n  update r = { n * m }\n  branch t, bb1, bb4\n"
            "bb1:\n  u = { n > 2 }\n  branch u, bb4, bb2\n"
            "bb2:\n  update r = { r - 5 }\n  jump bb4\n"
            "bb4:\n  update r = { jnp.sum(r + n + jnp.arange(99)) } reads (r, n)\n  return",
            "  n, m, r: i32[] reg   t, u: bool[] temp",
        )
        new = grafted(text, *PAIRS)
        assert labels(new) == ["bb0"] and "{ t and not u }" in body(new)

    def test_vectors_are_not_selected(self) -> None:
        text = program(
            "bb0:\n  t = { n > m }\n  branch t, bb1, bb2\n"
            "bb1:\n  update v = { v + 1 }\n  jump bb2\n"
            "bb2:\n  update r = { v[0] + jnp.sum(n + jnp.arange(99)) } reads (v, n)\n  return",
            "  n, m, r: i32[] reg   v: i32[9] reg   t: bool[] temp",
            "in=(n, m, v) out=(r)",
        )
        assert "bb1" in labels(grafted(text))

    def test_an_inner_loop_is_not_run_for_lanes_elsewhere(self) -> None:
        endless = "{ jax.lax.while_loop(lambda x: x != 0, lambda x: x - 1, n) } reads (n)"
        text = program(
            f"bb0:\n  t = {{ n > m }}\n  update r = m\n  branch t, bb1, return\nbb1:\n  update r = {endless}\n  return",
            "  n, m, r: i32[] reg   t: bool[] temp",
        )
        assert "bb1" in labels(grafted(text, (3, 1), (1, 3)))

    def test_a_loop_is_not_entered_by_a_copy_of_it(self) -> None:
        new = grafted(GCD_STACK, (12, 18))
        assert [print_program(new).count(word) for word in ("c % b", "b != 0")] == [1, 2]

    def test_the_program_stays_small(self) -> None:
        """A ladder of tests, each of which may go to each later block: copies of copies would double it every time."""
        steps = 14
        blocks = "".join(
            f"bb{k}:\n  t = {{ n > {k} }}\n  update r = {{ r * 3 + {k} }}\n  branch t, bb{k + 1}, bb{k + 2}\n"
            for k in range(steps)
        )
        ends = "".join(f"bb{k}:\n  update r = {{ r + {k} }}\n  return\n" for k in (steps, steps + 1))
        text = program(blocks + ends.rstrip(), "  n, r: i32[] reg   t: bool[] temp", "in=(n, r) out=(r)")
        new = grafted(text, *((n, 1) for n in (-3, 2, 7, 20)))
        old = sum(len(block.ops) for block in stack(text).blocks)
        assert sum(len(block.ops) for block in new.blocks) <= 4 * old


class TestThreading:
    """Jumps past empty blocks, in trees."""

    def after(self, text: str) -> str:
        return body(simplify_stack.run(stack(text)))

    def test_through_a_condition_that_is_known_there(self) -> None:
        text = program(
            "bb0:\n  update t = { n > m }\n  branch t, bb1, bb2\nbb1:\n  branch t, bb2, bb3\n"
            "bb2:\n  update r = n\n  return\nbb3:\n  update r = m\n  return",
            "  n, m, r: i32[] reg   t: bool[] reg",
        )
        assert "bb3" not in self.after(text) and "branch" not in self.after(text)

    def test_a_call_of_a_block_that_only_tests(self) -> None:
        text = program(
            "bb0:\n  update t = { n > m }\n  update r = n\n  pushjump bb1, ret=bb4\nbb1:\n  branch t, return, bb3\n"
            "bb3:\n  update r = m\n  return\nbb4:\n  update r = { r + 1 }\n  return",
            "  n, m, r: i32[] reg   t: bool[] reg",
        )
        assert "branch t, bb4, call bb3 ret=bb4" in self.after(text)

    def test_a_call_that_comes_back_to_a_return_is_a_jump(self) -> None:
        text = program(
            "bb0:\n  update t = { n > m }\n  update r = n\n  branch t, bb1, bb3\nbb1:\n  pushjump bb3, ret=bb2\n"
            "bb2:\n  return\nbb3:\n  update r = m\n  return",
            "  n, m, r: i32[] reg   t: bool[] reg",
        )
        assert self.after(text).startswith("bb0:\n  update t = { n > m }\n  update r = n\n  update r = m\n  return")

    def test_a_ring_of_empty_blocks_stays(self) -> None:
        text = program(
            "bb0:\n  update r = n\n  jump bb1\nbb1:\n  jump bb2\nbb2:\n  jump bb1",
            "  n, r: i32[] reg",
            "in=(n) out=(r)",
        )
        assert "jump" in self.after(text)

    def test_forks_are_not_taken_apart(self) -> None:
        fork = stack(TAIL_STACK).block("f").terminator
        assert isinstance(fork, Fork) and simplify_stack.fits(fork)
