"""All modes, policies and emitters give the same; blocks that must not run on junk do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Status
from pcbatch.runtime.vm.status import parked
from tests.oracles.plans import replanned

pytestmark = [pytest.mark.share(3), pytest.mark.older_emitters, pytest.mark.long]

DENSE = [pcbatch.Dense(), pcbatch.Dense(2), pcbatch.Dense(always=True)]
MODES = [None, *DENSE, pcbatch.Few(2), pcbatch.Few(9), pcbatch.Strips(1), pcbatch.Strips(3)]
every_mode = pytest.mark.parametrize("modes", MODES, ids=str)
every_emitter = pytest.mark.parametrize("emitter", ["guard", "port"])


def collatz(x):
    """Ends on numbers from 1 on only."""
    return jax.lax.while_loop(lambda x: x != 1, lambda x: jnp.where(x % 2 == 0, x // 2, 3 * x + 1), x)


def descend(n, x):
    total = 0
    while n > 0:
        total = total + collatz(x)
        n = n - 1
        x = n  # 0 at the end
    return total


def descend_and_count(n, x, k):
    """The first loop stands empty while lanes are in the second."""
    total = 0
    while n > 0:
        total = total + collatz(x)
        n = n - 1
        x = n
    while k > 0:
        total = total + 1
        k = k - 1
    return total


N, X = np.array([3, 5, 1, 0], np.int32), np.array([5, 6, 7, 8], np.int32)


@pytest.mark.share(2)
@every_mode
@pytest.mark.timeout(60)
def test_an_inner_loop_does_not_run_when_all_lanes_have_left(modes: Any) -> None:
    assert pcbatch.batch(descend, plan=pcbatch.Plan(modes=modes))(N, X).tolist() == [3, 5, 1, 0]


@dataclass(frozen=True)
class Everything:
    """Runs every block by its number, also those that no lane waits for."""

    name: str = "everything"

    def trip(self, blocks: Any, carry: Any) -> Any:
        for k in range(len(blocks)):
            carry = blocks.run(jnp.int32(k), carry)
        return carry


def once_and_count(x, k):
    total = collatz(x)
    x = total - 1  # 0
    while k > 0:
        total = total + x + 1
        k = k - 1
    return total


@pytest.mark.timeout(60)
def test_a_machine_that_has_ended_beside_one_that_runs() -> None:
    """Under `vmap` it names a block all the same, though no lane waits for it: the first, whose inner loop would not
    end on the 0 that lanes hold."""
    batched = pcbatch.batch(once_and_count, plan=pcbatch.Plan(emitter="guard", schedule="largest"))
    ones, ks = np.ones((2, 1), np.int32), np.array([[1], [5]], np.int32)
    assert jax.jit(jax.vmap(batched))(ones, ks).tolist() == [[2], [6]]


@pytest.mark.share(2)
@every_emitter
@pytest.mark.parametrize("modes", [pcbatch.Dense(), pcbatch.Few(2), pcbatch.Strips(1)], ids=str)
@pytest.mark.timeout(60)
def test_a_policy_may_name_a_block_that_no_lane_waits_for(modes: Any, emitter: str) -> None:
    batched = pcbatch.batch(descend_and_count, plan=pcbatch.Plan(modes=modes, emitter=emitter, schedule=Everything()))
    assert batched(N, X, X).tolist() == [8, 11, 8, 8]


def tidy(xs, low, n):
    """Swaps, loads and stores in part, in a recursion."""
    if n <= 0:
        return xs
    a, b = xs[low], xs[low + n]
    xs = xs.at[low].set(jnp.minimum(a, b)).at[low + n].set(jnp.maximum(a, b))
    xs = tidy(xs, low + 1, n - 2)
    return xs.at[low].add(1.0)


@pytest.mark.share(20)
@every_mode
@every_emitter
@pytest.mark.parametrize("lanes", [1, 6])
def test_stores_in_part_beside_calls(modes: Any, emitter: str, lanes: int) -> None:
    random = np.random.default_rng(0)
    xs = random.normal(size=(lanes, 20)).astype(np.float32)
    low, n = np.arange(lanes, dtype=np.int32), np.arange(lanes, dtype=np.int32)[::-1] + 2
    batched = pcbatch.batch(tidy, plan=pcbatch.Plan(modes=modes, emitter=emitter))
    got = np.asarray(batched(xs, low, n))
    for lane in range(lanes):
        np.testing.assert_array_equal(got[lane], batched.plain(jnp.asarray(xs[lane]), low[lane], n[lane]))


def mixed(x, key, flag, n):
    if n <= 0:
        return x, key, flag
    key, sub = jax.random.split(key)
    left = mixed(x * 2, sub, not flag, n - 1)
    right = mixed(x + 1j, key, flag, n - 2)
    return left[0] + right[0], right[1], left[2] and right[2]


@pytest.mark.share(10)
@every_mode
@every_emitter
def test_keys_complex_numbers_and_truth_through_frames(modes: Any, emitter: str) -> None:
    lanes = 5
    keys = jax.random.split(jax.random.key(3), lanes)
    x = (np.arange(lanes) + 2j).astype(np.complex64)
    flag, n = np.arange(lanes) % 2 == 0, np.arange(lanes, dtype=np.int32)
    batched = pcbatch.batch(mixed, plan=pcbatch.Plan(modes=modes, emitter=emitter))
    got = batched(x, keys, flag, n)
    for lane in range(lanes):
        want = batched.plain(jnp.asarray(x[lane]), keys[lane], bool(flag[lane]), int(n[lane]))
        np.testing.assert_array_equal(got[0][lane], want[0])
        assert jax.random.key_data(got[1][lane]).tolist() == jax.random.key_data(want[1]).tolist()
        assert bool(got[2][lane]) == bool(want[2])


@pytest.mark.share(10)
@pytest.mark.parametrize("dtype", ["int4", "uint2", "float8_e4m3fn", "bfloat16", "float16"])
@every_mode
def test_narrow_types_in_every_mode(dtype: str, modes: Any) -> None:
    def keep(x, n):
        if n <= 0:
            return x
        y = keep(x, n - 1)
        return x if n > 2 else y

    x = jnp.asarray(np.arange(6) % 4).astype(dtype)
    got = pcbatch.batch(keep, plan=pcbatch.Plan(modes=modes))(x, np.arange(6, dtype=np.int32))
    assert got.dtype == x.dtype and np.asarray(got).astype(np.float32).tolist() == [0, 1, 2, 3, 0, 1]


@pytest.mark.share(2)
@every_mode
def test_arrays_without_elements(modes: Any) -> None:
    def grow(x, n):
        if n <= 0:
            return x, 0
        y, count = grow(x, n - 1)
        return y, count + 1

    empty, counts = pcbatch.batch(grow, plan=pcbatch.Plan(modes=modes))(
        np.zeros((4, 0, 3), np.float32), np.arange(4, dtype=np.int32)
    )
    assert empty.shape == (4, 0, 3) and counts.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("blocks", [1, 17, 18, 25, 4679, 4680, 6000, 40_000])
def test_many_blocks(blocks: int) -> None:
    """Program counters have room for every lane that has failed."""
    compiled, _ = pcbatch.batch(descend)._compiled((N, X), {})
    machine: Any = compiled.executable.machine  # type: ignore[union-attr]
    layout = replace(machine.layout, codes=machine.layout.codes[:1] * blocks)
    most = np.iinfo(layout.pc_type).max
    assert layout.nowhere <= most
    ends = {why for why in Status if why <= Status.ERROR} | layout.failures
    assert all(parked(block, blocks, why) < layout.nowhere for why in ends for block in (0, blocks))


def test_strips_visit_each_lane_once() -> None:
    """A lane that comes back to its block waits for the next trip, as it does when all are computed."""

    def halve(x, n):
        while n > 0:
            x = x * 0.5
            n = n - 1
        return x

    args = np.ones(5, np.float32), np.array([7, 0, 0, 0, 0], np.int32)
    f = pcbatch.batch(halve, plan=pcbatch.Plan(unroll=1))
    trips = [int(replanned(f, modes=modes).run(*args).stats.trips) for modes in (pcbatch.Dense(), MODES[-2])]
    assert trips[0] == trips[1] >= 7
