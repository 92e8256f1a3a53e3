"""Policies and modes: whatever runs next and however a block is computed, every lane gets the same."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Dense, Few, Policy, Status, Strips, UsageError
from pcbatch.lowering.stack_passes import block_layout
from pcbatch.report import Blocks
from pcbatch.runtime.vm.policies import FAIR, POLICIES
from tests.programs import PROGRAMS, REGISTRY, Program

pytestmark = [pytest.mark.share(3), pytest.mark.older_emitters, pytest.mark.promotion("standard")]

LANES = 7
MODES = (Few(2), Few(1), Strips(2), Dense(1), Dense(2))
EMITTERS = ("guard", "port")
THOROUGH = ("fib", "count_primes", "pea_nuts", "catalan")


@dataclass(frozen=True)
class Nothing:
    """Never runs a block."""

    name: str = "nothing"

    def trip(self, blocks: Blocks, carry: Any) -> Any:
        return carry


@dataclass(frozen=True)
class Last:
    """Only ever names the last block, whether somebody waits there or not."""

    name: str = "last"

    def trip(self, blocks: Blocks, carry: Any) -> Any:
        return blocks.run(jnp.int32(len(blocks) - 1), carry)


@dataclass(frozen=True)
class Pairs:
    """Runs the fullest of two blocks that it was told of, out of order, and then backwards over all."""

    name: str = "pairs"

    def trip(self, blocks: Blocks, carry: Any) -> Any:
        two = (len(blocks) - 1, 0)
        fullest = jnp.argmax(blocks.waiting(carry)[jnp.array(two)])
        carry = blocks.run(jnp.array(two)[fullest], carry, among=two)
        return blocks.sweep(range(len(blocks) - 1, -1, -1), carry)


@functools.lru_cache(maxsize=8)
def default(program: Program) -> list[Any]:
    """What a run with default options gives."""
    return leaves(program)


def leaves(program: Program, **options: Any) -> list[Any]:
    """The results and statuses of a run."""
    with program.mode():
        run = program.batched(**options).run(*program.args(LANES))
        value = jax.tree.map(_bits, (run.value, run.status))
    return jax.tree.leaves(value)


def _bits(x: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x)


def assert_same(a: list[Any], b: list[Any], rtol: float) -> None:
    """Equal, floats up to rounding: XLA compiles `exp` of two lanes and of seven into different instructions."""
    for x, y in zip(a, b, strict=True):
        assert x.dtype == y.dtype
        if jnp.issubdtype(x.dtype, jnp.inexact):
            x, y = (v.astype(np.complex128) for v in (x, y))
            np.testing.assert_allclose(x, y, rtol=max(rtol, 1e-5), atol=1e-6)
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.share(20, 19)
@pytest.mark.in_place
@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_modes(program: Program) -> None:
    """What the default run gives; each program meets one of the modes."""
    mode = MODES[PROGRAMS.index(program) % len(MODES)]
    assert_same(leaves(program, modes=mode, emitter="guard"), default(program), program.rtol)


@pytest.mark.full_only
@pytest.mark.long
@pytest.mark.parametrize("name", THOROUGH)
@pytest.mark.parametrize("mode", MODES, ids=repr)
def test_modes_under_other_policies(name: str, mode: Any) -> None:
    program = REGISTRY[name]
    schedule = list(POLICIES)[(THOROUGH.index(name) + MODES.index(mode)) % len(POLICIES)]
    assert_same(leaves(program, modes=mode, schedule=schedule), default(program), program.rtol)


@pytest.mark.share(30)
@pytest.mark.long
@pytest.mark.parametrize("name", THOROUGH)
@pytest.mark.parametrize("emitter", EMITTERS)
def test_policies(name: str, emitter: str) -> None:
    program = REGISTRY[name]
    for policy in (*POLICIES, Pairs()):
        assert_same(leaves(program, schedule=policy, emitter=emitter), default(program), program.rtol)


@pcbatch.batch
def down(n):
    steps = 0
    while n > 0:
        n = n - 1
        if n % 3 == 0:
            n = n - jnp.tanh(jnp.sin(jnp.float32(n))).astype(jnp.int32)
        steps = steps + 1
    return steps


class TestPoliciesOfUsers:
    """They cannot make a run hang, nor change what it gives."""

    @pytest.mark.share(2)
    @pytest.mark.parametrize("emitter", EMITTERS)
    @pytest.mark.parametrize("policy", [Nothing(), Last()], ids=lambda policy: policy.name)
    def test_running_nothing_ends_all_the_same(self, policy: Policy, emitter: str) -> None:
        args = np.arange(6, dtype=np.int32)
        batched = down.with_options(plan=pcbatch.Plan(schedule=policy, emitter=emitter))
        run = batched.run(args)
        np.testing.assert_array_equal(run.value, down(args))
        assert int(run.stats.trips) >= FAIR
        np.testing.assert_array_equal(batched.map(args, lanes=2).value, down(args))

    @pytest.mark.parametrize("emitter", EMITTERS)
    def test_a_risky_block_does_not_run_for_nobody(self, emitter: str) -> None:
        """A loop inside a primitive would not end on the values of lanes that are elsewhere."""

        def halve(x):
            return jax.lax.while_loop(lambda v: v != 1, lambda v: v // 2, x)

        @pcbatch.batch(plan=pcbatch.Plan(schedule=Last(), emitter=emitter))
        def guarded(n):
            total = 0
            while n > 0:
                n = n - 1
                if n > 0:
                    total = total + halve(n)
            return total

        np.testing.assert_array_equal(guarded(np.arange(4, dtype=np.int32)), [0, 0, 1, 2])

    def test_what_it_is_given(self) -> None:
        seen: dict[str, Any] = {}

        class Curious:
            name = "curious"

            def trip(self, blocks: Blocks, carry: Any) -> Any:
                seen.update(blocks=len(blocks), labels=blocks.labels, holding=blocks.holding("steps + 1"))
                seen.update(waiting=blocks.waiting(carry).shape, live=blocks.live(carry).shape, modes=blocks.modes)
                return blocks.drain(range(len(blocks)), carry)

        run = down.with_options(plan=pcbatch.Plan(schedule=Curious())).run(np.arange(6, dtype=np.int32))
        np.testing.assert_array_equal(run.value, down(np.arange(6, dtype=np.int32)))
        assert int(run.stats.trips) == 1
        assert seen["labels"] == tuple(f"bb{k}" for k in range(seen["blocks"]))
        assert seen["holding"] and seen["waiting"] == (seen["blocks"],) and seen["live"] == ()
        assert len(seen["modes"]) == seen["blocks"]

    @pytest.mark.share(2)
    @pytest.mark.parametrize("emitter", EMITTERS)
    @pytest.mark.parametrize("backwards", [False, True])
    def test_they_can_be_ours(self, emitter: str, backwards: bool) -> None:
        """As many trips as `largest` makes: what is named is what runs."""

        class Fullest:
            name = "fullest"

            def trip(self, blocks: Blocks, carry: Any) -> Any:
                among = range(len(blocks) - 1, -1, -1) if backwards else None
                return blocks.run(jnp.argmax(blocks.waiting(carry)), carry, among)

        args = np.arange(6, dtype=np.int32)
        ours = down.with_options(plan=pcbatch.Plan(schedule="largest", emitter=emitter)).run(args)
        assert int(
            down.with_options(plan=pcbatch.Plan(schedule=Fullest(), emitter=emitter)).run(args).stats.trips
        ) == int(ours.stats.trips)

    def test_the_protocol(self) -> None:
        assert isinstance(Nothing(), Policy) and not isinstance(object(), Policy)
        assert all(isinstance(policy, Policy) for policy in POLICIES.values())

    @pytest.mark.parametrize("wrong", [Nothing, object(), 3, None, ["sweep"]])
    def test_wrong_objects(self, wrong: object) -> None:
        with pytest.raises(UsageError, match="PCB401"):
            down.with_options(plan=pcbatch.Plan(schedule=wrong))

    @pytest.mark.parametrize("given", [None, (), "carry", {}], ids=repr)
    def test_a_trip_that_gives_something_else(self, given: Any) -> None:
        class Wrong:
            name = "wrong"

            def trip(self, blocks: Blocks, carry: Any) -> Any:
                return given

        with pytest.raises(UsageError, match="PCB420"):
            down.with_options(plan=pcbatch.Plan(schedule=Wrong()))(np.arange(3, dtype=np.int32))


WEIGHTS = np.full((16, 16), 0.01, np.float32)


@pcbatch.batch
def two_dear(x, n, m):
    while n > 0:
        n = n - 1
        m = (m * 5 + 3) % 17
        if m > 8:
            x = jnp.tanh(x @ WEIGHTS + 1.0)
        else:
            x = jnp.sin(x @ WEIGHTS @ WEIGHTS + 0.5)
    return x


class TestSeveralExpensiveBlocks:
    """Cheap blocks run dry, then the fullest of the dear ones runs."""

    ARGS = (np.ones((24, 16), np.float32), np.arange(24, dtype=np.int32), np.arange(24, dtype=np.int32)[::-1].copy())

    def test_both_are_waited_for_and_stand_last(self) -> None:
        stages = two_dear.lower(*self.ARGS).stages
        dear = block_layout.expensive_blocks(stages.opt)
        assert dear == tuple(block.label for block in stages.opt.blocks[-2:]) and stages.schedule == "drain"

    @pytest.mark.parametrize("emitter", EMITTERS)
    def test_results(self, emitter: str) -> None:
        want = two_dear.with_options(plan=pcbatch.Plan(schedule="sweep", emitter="guard"))(*self.ARGS)
        np.testing.assert_array_equal(two_dear.with_options(plan=pcbatch.Plan(emitter=emitter))(*self.ARGS), want)

    def test_no_lane_waits_at_a_cheap_block(self) -> None:
        """A trip runs one dear block; lanes that do not take part wait at the other."""
        profile = two_dear.with_options(plan=pcbatch.Plan(modes=Dense())).profile(*self.ARGS)
        line, dear = profile.timeline, [k for k, b in enumerate(profile.blocks) if b.plan.expensive]
        assert line.span == 1 and len(dear) == 2
        assert (line.visits[:, dear].sum(axis=1) <= 1).all()
        total = sum(b.active for b in profile.expensive)
        assert total == sum(range(24))
        fullest = line.active[:, dear].max(axis=1)
        # Nobody waits elsewhere: the fuller of two blocks has at least half of the lanes that have not ended yet.
        ended = np.append(line.live[1:], 0)
        assert (2 * fullest >= ended).all()

    def test_cheap_loops_run_to_their_ends(self) -> None:
        """However long a lane stays in one: the dear block runs as often as the lane that needs it most often."""

        @pcbatch.batch(stats=True, plan=pcbatch.Plan(modes=Dense()))
        def detours(x, n, m):
            while n > 0:
                k = m
                while k > 0:
                    k = k - 1
                    m = (m * 5 + 3) % 17
                x = jnp.tanh(x @ WEIGHTS @ WEIGHTS)
                n = n - 1
            return x

        ran = detours.run(*self.ARGS).stats
        assert ran.visits("x @ WEIGHTS @ WEIGHTS") == max(self.ARGS[1])

    def test_one_that_is_cheap_as_a_whole_is_not_waited_for(self) -> None:
        @pcbatch.batch
        def rarely(x, n):
            x = jnp.tanh(x @ WEIGHTS)
            while n > 0:
                x = jnp.tanh(x @ WEIGHTS + 1.0)
                n = n - 1
            return x

        assert len(block_layout.expensive_blocks(rarely.lower(*self.ARGS[:2]).stages.opt)) == 1


class TestModes:
    """What the user says about how blocks are computed."""

    def test_by_label_and_by_text(self) -> None:
        plan = down.with_options(plan=pcbatch.Plan(modes={"steps + 1": Few(3), "bb0": Strips(2)})).explain_schedule(
            np.zeros(64, np.int32)
        )
        said = {row.label: row.mode for row in plan.rows if row.why == "as `modes` says"}
        assert said["bb0"] == str(Strips(2)) or "steps + 1" in plan.rows[0].text
        assert str(Few(3)) in said.values()

    def test_unknown_text(self) -> None:
        with pytest.raises(UsageError, match="PCB416"):
            down.with_options(plan=pcbatch.Plan(modes={"steps + 2": Few(3)}))(np.zeros(4, np.int32))

    @pytest.mark.parametrize("modes", ["dense", {"n": 3}, {3: Dense()}, Few])
    def test_wrong_objects(self, modes: object) -> None:
        with pytest.raises(UsageError, match="PCB401"):
            down.with_options(plan=pcbatch.Plan(modes=modes))

    @pytest.mark.parametrize("mode", MODES, ids=str)
    def test_limits_and_failures(self, mode: Any) -> None:
        """A lane that has used up its steps, fails, or has no room leaves in every mode."""

        @pcbatch.batch(plan=pcbatch.Plan(modes=mode, emitter="guard"), max_steps=50, max_depth=8)
        def ends(n):
            assert n != 3, "three"
            while n > 100:
                n = n + 1
            return 0 if n <= 0 else 1 + ends(n - 4)

        status = ends.run(np.array([0, 3, 200, 7, 8, 96], np.int32)).status
        want = [Status.OK, Status.ASSERTION, Status.STEP_LIMIT, Status.ASSERTION, Status.OK, Status.STACK_FULL]
        assert [Status(s) for s in np.asarray(status)] == want
