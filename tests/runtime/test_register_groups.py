"""Registers as rows of one array: which are grouped, and that lanes do not notice."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.vm import register_groups
from pcbatch.runtime.vm.lane_window import everyone, first
from pcbatch.runtime.vm.register_groups import groups_of, plan

LANES = 9
F, I = np.dtype(np.float32), np.dtype(np.int32)


def orbit(y, v, end):
    """Five registers, of which four floating numbers are written together."""
    t, step, taken = 0.0, 0.25, 0
    while t < end:
        new_y, new_v = y + step * v, v - step * y
        if abs(new_y) + abs(new_v) < 4.0:
            y, v, t, taken = new_y, new_v, t + step, taken + 1
        step = step * 0.5 if step > 0.1 else 0.25
    return y, v, t, taken


def ways(n, a, b, c):
    """A recursion in a loop, whose registers are saved in frames."""
    if n <= 0:
        return a + 2 * b + 3 * c
    total, k = 0, 0
    while k < n:
        total, k, a, b, c = total + ways(n - 2, b, c, a), k + 1, a + 1, b + a, c + b
    return total


Y, V = np.linspace(-1, 1, LANES, dtype=np.float32), np.linspace(0.5, 0, LANES, dtype=np.float32)
END = np.arange(LANES, dtype=np.float32) / 2
N = np.arange(LANES, dtype=np.int32) % 5
WAYS = (N, N + 1, N + 2, N + 3)


def orbits(y: Any, v: Any, end: Any) -> list[np.ndarray]:
    """What the plain function gives for each lane."""
    rows = [orbit(*map(np.float32, each)) for each in zip(y, v, end, strict=True)]
    return [np.asarray(column) for column in zip(*rows, strict=True)]


def check(found: Any, expected: Any) -> None:
    """The leaves are equal, up to rounding."""
    for a, b in zip(jax.tree.leaves(found), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


class TestPlan:
    def test_registers_that_blocks_write_together_are_one_group(self):
        assert plan([("a", "b", "c"), ("a", "b", "c")], dict.fromkeys("abc", F), 16) == (("a", "b", "c"),)

    def test_dtypes_stay_apart(self):
        found = plan([tuple("abcdef")], dict.fromkeys("abc", F) | dict.fromkeys("def", I), 16)
        assert found == (("a", "b", "c"), ("d", "e", "f"))

    def test_a_group_has_eight_rows_at_most(self):
        names = [f"r{k}" for k in range(19)]
        assert [len(group) for group in plan([names], dict.fromkeys(names, F), 16)] == [8, 8, 3]

    def test_two_registers_gain_nothing(self):
        assert plan([("a", "b")], dict.fromkeys("ab", F), 16) == ()

    def test_a_block_does_not_pay_for_a_row_among_many(self):
        assert plan([*[tuple("abcd")] * 5, ("a",)], dict.fromkeys("abcd", F), 16) == (("b", "c", "d"),)

    def test_half_of_the_rows_is_enough(self):
        (group,) = plan([tuple("abcd"), ("a", "b")], dict.fromkeys("abcd", F), 16)
        assert sorted(group) == list("abcd")

    def test_registers_that_nobody_writes_and_those_of_no_scalar_stay_alone(self):
        assert plan([("a", "b", "c", "vector")], dict.fromkeys("abcd", F), 16) == (("a", "b", "c"),)

    def test_wide_machines_have_none(self):
        assert plan([("a", "b", "c")], dict.fromkeys("abc", F), 513) == ()


class TestGroups:
    groups = groups_of([("a", "b", "c")])
    carry = {key: jnp.arange(4.0) + 10 * k for k, key in enumerate("abc")} | {"pc": jnp.zeros(4, jnp.int8)}

    def test_unpacking_gives_back_what_was_packed(self):
        packed = self.groups.pack(self.carry)
        assert {key: x.shape for key, x in packed.items()} == {"pc": (4,), "rows:0": (3, 4)}
        back = self.groups.unpack(packed)
        assert all(np.array_equal(back[key], x) for key, x in self.carry.items())

    @pytest.mark.parametrize("narrow", [False, True])
    def test_only_lanes_of_the_window_and_rows_that_are_named_are_written(self, narrow: bool):
        mask = jnp.array([False, True, False, True])
        window = first(mask, 3) if narrow else everyone(mask)
        new = -1.0 - jnp.arange(3.0 if narrow else 4.0)
        out = self.groups.unpack(self.groups.write(self.groups.pack(self.carry), {"b": new}, window, window.here))
        changed = [new[0], new[1]] if narrow else [new[1], new[3]]
        assert out["b"].tolist() == [10.0, changed[0], 12.0, changed[1]]
        assert out["a"].tolist() == [0.0, 1.0, 2.0, 3.0]

    def test_places_outside_of_the_mask_write_nothing(self):
        window = first(jnp.array([True, True, False, False]), 2)
        packed = self.groups.pack(self.carry)
        out = self.groups.write(packed, {"c": jnp.array([-1.0, -2.0])}, window, jnp.array([False, True]))
        assert out["rows:0"][2].tolist() == [20.0, -2.0, 22.0, 23.0]

    def test_keys_name_each_array_once(self):
        assert self.groups.keys(["pc", "a", "c", "d"]) == ("pc", "rows:0", "d")


@pytest.mark.share(4)
@pytest.mark.parametrize("modes", [None, pcbatch.Dense(), pcbatch.Few(4), pcbatch.Strips(3)], ids=str)
@pytest.mark.parametrize("emitter", ["guard", "port"])
def test_emitters_and_modes(emitter: str, modes: Any):
    found = pcbatch.batch(orbit, plan=pcbatch.Plan(emitter=emitter, modes=modes))(Y, V, END)
    check(found, orbits(Y, V, END))


@pytest.mark.share(2)
@pytest.mark.parametrize("schedule", ["earliest", "sweep", "drain"])
def test_recursion(schedule: str):
    expected = [ways(*map(int, each)) for each in zip(*WAYS, strict=True)]
    assert pcbatch.batch(ways, plan=pcbatch.Plan(schedule=schedule))(*WAYS).tolist() == expected


def test_more_inputs_than_lanes():
    args = tuple(np.tile(x, 3) for x in (Y, V, END))
    check(pcbatch.batch(orbit).map(*args, lanes=4).value, orbits(*args))


def test_a_run_that_is_saved_goes_on(tmp_path: Any):
    batched = pcbatch.batch(orbit)
    batched.start(Y, V, END).advance(max_trips=5).save(tmp_path / "run.npz")
    check(batched.load(tmp_path / "run.npz").advance().result().value, orbits(Y, V, END))


def test_transformations():
    batched = pcbatch.batch(orbit)
    check(jax.jit(lambda *args: batched(*args))(Y, V, END), orbits(Y, V, END))
    twice = tuple(np.stack([x, x[::-1]]) for x in (Y, V, END))
    for found, one in zip(jax.vmap(batched)(*twice), orbits(Y, V, END), strict=True):
        np.testing.assert_allclose(found, np.stack([one, one[::-1]]), rtol=2e-5, atol=1e-5)


def test_gradients_are_those_of_a_machine_without_groups(monkeypatch: pytest.MonkeyPatch):
    def gradient() -> Any:
        return jax.grad(lambda y: jnp.sum(pcbatch.batch(orbit, max_tape=4096)(y, V, END)[0] ** 2))(jnp.asarray(Y))

    with_groups = gradient()
    monkeypatch.setattr(register_groups, "ENABLED", False)
    np.testing.assert_allclose(with_groups, gradient(), rtol=1e-6)
