"""Liveness, the call graph and the solver on small programs whose answers are known."""

from __future__ import annotations

from pcbatch.ir.analysis import callgraph, liveness, must_assign
from pcbatch.ir.analysis.dataflow import backward, block_edges, forward, reachable
from pcbatch.ir.analysis.loops import loops
from pcbatch.ir.stack import PushJump
from tests.ir.samples import CHAIN_CFG, FIB_CFG, FIB_STACK, FORK_STACK, GCD_CFG, PARITY_CFG, TAIL_STACK, cfg, stack

LOOP = """\
pcir 1 cfg
func @f(n: ?, k: ?) -> (acc: ?) {
  i, t, dead: ?
bb0:
  i = { 0 }
  acc = { 0 }
  jump head
head:
  t = { i < n }
  branch t, body, return
body:
  dead = { k }
  acc = { acc + k }
  i = { i + 1 }
  jump head
}
"""


NESTED = """\
pcir 1 cfg
func @f(n: ?) -> (n) {
  t: ?
bb0:
  jump outer
outer:
  t = { n > 0 }
  branch t, inner, return
inner:
  t = { n % 7 > 0 }
  branch t, body, next
body:
  n = { n - 1 }
  branch t, inner, inner
next:
  n = { n - 2 }
  jump outer
}
"""


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def test_natural_loops():
    """The inner one first; what leaves a loop is no part of it."""
    found = loops(cfg(NESTED).functions[0])
    assert [(loop.head, loop.body) for loop in found] == [
        ("inner", names("inner body")),
        ("outer", names("outer inner body next")),
    ]
    assert loops(cfg(FIB_CFG).functions[0]) == ()


def test_liveness_goes_round_loops():
    function = cfg(LOOP).functions[0]
    assert liveness.live_in(function) == {"bb0": names("n k"), "head": names("n k i acc"), "body": names("n k i acc")}
    assert liveness.live_out(function)["head"] == names("n k i acc")
    assert liveness.live_after(function)["bb0"] == (names("n k i"), names("n k i acc"))
    assert liveness.live_after(function)["head"] == (names("n k i acc t"),)
    assert liveness.live_after(function)["body"][0] == names("n k i acc")  # `dead` is not in it


def test_results_live_where_a_branch_returns():
    function = cfg(GCD_CFG).functions[0]
    assert liveness.live_after(function)["head"] == (names("a b t"),)


def test_a_result_that_only_a_branch_returns_is_live():
    text = """\
pcir 1 cfg
func @f(n: i32[]) -> (r: i32[]) {
  t: bool[]
bb0:
  r = { n + 1 }
  t = { n > 0 }
  branch t, bb1, return
bb1:
  r = { 5 }
  return
}
"""
    assert liveness.live_after(cfg(text).functions[0])["bb0"] == (names("n r"), names("t r"))


def test_liveness_between_calls():
    after = liveness.live_after(cfg(FIB_CFG).functions[0])["bb2"]
    assert after == (names("n t1"), names("n left"), names("left t2"), names("left right"), names("r"))


def test_stack_liveness_follows_calls_and_returns():
    program = stack(FIB_STACK)
    live = liveness.live_in(program)
    assert live == {"bb0": names("n"), "bb1": names(""), "bb2": names("n"), "bb3": names("r"), "bb4": names("r")}
    assert liveness.return_points(program) == {"bb1": ("bb3", "bb4"), "bb4": ("bb3", "bb4")}
    # A pop starts a new value, a push reads the old one.
    assert liveness.live_after(program)["bb3"] == (names("n r"), names("n r"), names("n"))


def test_a_value_lives_through_a_callee_that_does_not_mention_it():
    unsaved = stack(FIB_STACK.replace("  pop n\n", "").replace("  push n = n0\n", ""))
    assert "n" in liveness.live_in(unsaved)["bb1"]


SHARED_HELPER = """\
pcir 1 stack
program entry=main in=(x) out=(r) {
  x, y, z, r: ?
main:
  y = { x + 1 }
  pushjump helper, ret=one
one:
  z = { x + y }
  pushjump helper, ret=two
two:
  r = { x + z }
  return
helper:
  x = { x - 1 }
  branch x, call deep ret=done, return
done:
  return
deep:
  x = { x - 1 }
  return
}
"""


def test_a_return_goes_to_its_own_call():
    """Variables that a caller of a helper needs after it live in the helper, but not before the call of another one."""
    program = stack(SHARED_HELPER)
    live = liveness.live_in(program)
    assert (live["main"], live["one"], live["two"]) == (names("x"), names("x y"), names("x z"))
    assert live["helper"] == live["deep"] == live["done"] == names("x y z")
    assert liveness.live_out(program)["main"] == names("x y")
    found = liveness.Liveness.of(program)
    assert found.returned("deep") == found.returned("done") == names("x y z")
    assert found.called(PushJump("helper", "one")) == names("x y")
    assert found.called(PushJump("deep", "done")) == names("x y z")
    assert liveness.doubtful(program) == names("z")  # if the first return went to `two`


def test_a_call_that_never_returns_needs_nothing_behind_it():
    program = stack(
        SHARED_HELPER.replace("done:\n  return", "done:\n  jump done").replace(
            "branch x, call deep ret=done, return", "pushjump deep, ret=done"
        )
    )
    assert liveness.live_in(program)["helper"] == liveness.live_in(program)["main"] == names("x")


def test_what_a_callee_of_a_callee_writes_is_dead_before_both():
    program = stack(
        "pcir 1 stack\nprogram entry=a in=(x) out=(r) {\n  x, r, s: ?\n"
        "a:\n  s = { x }\n  pushjump f, ret=b\nb:\n  r = s\n  return\n"
        "f:\n  pushjump g, ret=h\nh:\n  return\ng:\n  s = { 2 }\n  return\n}\n"
    )
    live = liveness.live_in(program)
    assert (live["f"], live["g"], live["h"], live["b"]) == (names(""), names(""), names("s"), names("s"))


def test_results_live_at_the_outermost_return_only():
    program = stack(
        "pcir 1 stack\nprogram entry=a in=() out=(r) {\n  r, s: ?\n"
        "a:\n  r = { 1 }\n  pushjump f, ret=b\nb:\n  r = s\n  return\nf:\n  s = { 2 }\n  return\n}\n"
    )
    assert liveness.live_out(program) == {"a": names(""), "b": names("r"), "f": names("s")}


def test_forks_go_every_way():
    program = stack(FORK_STACK)
    assert liveness.live_in(program) == {"f": names("x"), "back": names("r"), "g": names("x")}
    assert liveness.return_points(program) == {"f": (), "back": (), "g": ("back",)}
    returned = liveness.Liveness.of(program).returned
    assert (returned("f"), returned("back"), returned("g")) == (names("r"), names("r"), names("r"))
    assert must_assign.stack_written(program)[0]["back"] == names("t u x r")


def test_slots_live_until_they_are_popped_or_pushed():
    program = stack(FIB_STACK)
    assert liveness.slots_live_out(program)["bb2"] == names("n")
    assert liveness.slots_live_in(program) == {
        "bb0": names(""),
        "bb1": names(""),
        "bb2": names(""),
        "bb3": names("n"),
        "bb4": names("left"),
    }
    kept = stack(FIB_STACK.replace("bb3:\n  pop n\n", "bb3:\n").replace("bb4:\n", "bb4:\n  pop n\n"))
    assert liveness.slots_live_in(kept)["bb3"] == names("n")
    assert liveness.slots_live_in(stack(FORK_STACK))["back"] == names("x")


def test_tail_jumps_stay_in_the_activation():
    program = stack(TAIL_STACK)
    assert liveness.activation(program, "g") == {"g"}
    assert liveness.activation(program, "f") == {"f", "deep", "back", "g"}
    assert liveness.return_points(program) == {"g": ("back",)}


def test_call_graph():
    parity, chain = cfg(PARITY_CFG), cfg(CHAIN_CFG)
    assert callgraph.calls(parity) == {"even": {"odd"}, "odd": {"even"}}
    assert callgraph.recursive(parity) == {"even", "odd"}
    assert callgraph.recursive(chain) == {"unused"}
    assert callgraph.sccs(chain) == (("leaf",), ("middle",), ("top",), ("unused",))
    assert [set(component) for component in callgraph.sccs(parity)] == [{"even", "odd"}]


def test_static_depth():
    assert callgraph.static_depth(cfg(CHAIN_CFG)) == 2
    assert callgraph.static_depth(cfg(GCD_CFG)) == 0
    assert callgraph.static_depth(cfg(FIB_CFG)) is None


def test_written_on_all_paths():
    function = cfg(FIB_CFG).functions[0]
    assert must_assign.written(function) == {"bb0": names("n"), "bb1": names("n t0"), "bb2": names("n t0")}
    anywhere, outermost = must_assign.stack_written(stack(FIB_STACK))
    assert anywhere["bb3"] == names("n n0 t0 r")
    assert outermost["bb0"] == names("n")
    assert must_assign.slots(stack(FIB_STACK))["bb0"]["bb4"] == names("n left")


def test_the_solver_both_ways():
    blocks = cfg(LOOP).functions[0].blocks

    def collect(label: str, values: list[frozenset[str]]) -> frozenset[str]:
        return frozenset({label}).union(*values)

    def keep(_: str, value: frozenset[str]) -> frozenset[str]:
        return value

    before = forward(blocks, join=collect, transfer=keep, start=frozenset())
    after = backward(blocks, join=collect, transfer=keep, start=frozenset())
    assert before.entering["bb0"] == {"bb0"}
    assert before.entering["body"] == {"bb0", "head", "body"}
    assert after.leaving["body"] == {"head", "body"}
    assert reachable(["body"], block_edges(blocks)) == {"head", "body"}
