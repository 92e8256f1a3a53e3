"""Requests and their values: each is what it was when it was asked, and gets what the plain function gives."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ask import request as requests
from tests.ask.programs import first_state

pytest.importorskip("greenlet")

TOGETHER = pcbatch.Plan(schedule="sweep")  # so that lanes suit the function on a CPU, too
ONE = jnp.float32(1)


@pcbatch.batch
def doubled(x: Any) -> Any:
    return x + x


@pcbatch.batch
def summed(xs: Any) -> Any:
    return sum(xs)


@pcbatch.batch(in_axes=(None, 0))
def folded(weights: Any, x: Any) -> Any:
    for key in weights:
        if weights[key] is not None:
            x = x * 10 + weights[key]
    return x


@pcbatch.batch(in_axes=(None, 0), plan=TOGETHER)
def added(weights: Any, n: Any) -> Any:
    total = 0.0
    while n > 0:
        total += weights[0]
        n -= 1
    return total


@pcbatch.batch(in_axes={"shared": None}, static_argnames=("sign",))
def signed(shared: Any, x: Any, sign: Any) -> Any:
    return jnp.arctan2(shared, x), jnp.copysign(x, sign)


@pcbatch.batch(out_axes=(1, None), in_axes=(0, None))
def transposed(x: Any, shared: Any) -> Any:
    return jnp.stack([x, 10 * x, 100 * x]), shared + 1


@pcbatch.batch(plan=TOGETHER)
def odd(n: Any) -> Any:
    k = 0
    while k < n:
        k += 1
    return {"z": None if k % 2 == 0 else k, "a": (n, None if n > 3 else (k, n))}


@pcbatch.batch
def listed(n: Any) -> Any:
    pairs, rows, text = [], [], b""
    for k in range(n):
        pairs.append((k, "x" * k))
        rows.append([k] * k)
        text = text + b"y"
    return pairs, rows, text, [k for k, _ in pairs]


@pcbatch.batch
def nothing(x: Any) -> None:
    return None


@pcbatch.batch(in_axes=1)
def second_axis(state: Any) -> Any:
    return state["h"]


def asked(*calls: Callable[[], Any]) -> list[Any]:
    """The answers to some requests of one batch, or the names of their errors."""
    got: list[Any] = pcbatch.gather(lambda call: call(), calls, return_exceptions=True)
    return [
        type(one).__name__ if isinstance(one, Exception) else jax.tree.map(lambda x: x.tolist(), one) for one in got
    ]


@pytest.mark.promotion("standard")  # "strict" would hold in this thread alone
def test_a_request_has_what_a_buffer_held_when_it_was_asked() -> None:
    buffer, grown = np.zeros(2, np.float32), list[int]()

    def one(k: int) -> tuple[list[float], int]:
        buffer[:] = k
        first = doubled.ask(buffer).tolist()
        grown.append(k)
        return first, int(summed.ask(grown))

    assert pcbatch.gather(one, [1, 2, 3]) == [([2.0] * 2, 1), ([4.0] * 2, 3), ([6.0] * 2, 6)]

    async def main() -> list[Any]:
        futures = []
        for k in range(3):
            buffer[:] = k
            futures.append(doubled.ask(buffer))
        return await asyncio.gather(*futures)

    assert [x.tolist() for x in asyncio.run(main())] == [[0.0] * 2, [2.0] * 2, [4.0] * 2]


def test_a_shared_container_that_has_changed_is_another() -> None:
    weights: dict[str, Any] = {"a": ONE, "b": 2 * ONE, "c": None}

    def ask() -> float:
        got = [float(folded.ask(weights, np.float32(0))) for _ in range(2)]  # the second one repeats the first
        assert got == [float(folded.plain(weights, np.float32(0)))] * 2
        return got[0]

    assert pcbatch.gather(lambda _: ask(), [0]) == [12.0]
    weights["a"] = weights.pop("a")  # the order is another one
    assert pcbatch.gather(lambda _: ask(), [0]) == [21.0]
    weights["c"], weights["b"] = weights["b"], None
    assert pcbatch.gather(lambda _: ask(), [0]) == [21.0]
    del weights["c"]
    assert pcbatch.gather(lambda _: ask(), [0]) == [1.0]


@pytest.mark.parametrize("kind", [np.array, list])
@pytest.mark.parametrize("others", [False, True])
def test_shared_numbers_that_are_changed_in_place_are_seen(kind: Any, others: bool) -> None:
    weights = kind([1.0, 2.0])

    def one(k: int) -> list[float]:
        if k == 0:
            return [float(added.ask(weights, 3000 if others else 1))]  # a lane that is open meanwhile
        weights[0] = 1.0
        got = [float(added.ask(weights, 2))]
        weights[0] = 5.0
        return [*got, float(added.ask(weights, 2))]

    assert pcbatch.gather(one, [0, 1]) == [[3000.0 if others else 1.0], [2.0, 10.0]]


def test_numbers_that_do_not_fit_fail_alone() -> None:
    for _ in range(2):  # the second time all of them repeat others
        got = asked(*(lambda k=k: doubled.ask(np.array([k, 1])) for k in (1, 2**40, 3)))
        assert got == [[2, 2], "UsageError", [6, 2]]
    assert asked(*(lambda k=k: summed.ask([k, 1]) for k in (1, 2**40, 3))) == [2, "UsageError", 4]
    assert asked(*(lambda k=k: summed.ask([k, 1]) for k in (1, 2**80))) == [2, "UsageError"]
    assert asked(*(lambda k=k: doubled.ask(k) for k in (1, 2, 2**40))) == [2, 4, "UsageError"]
    with pytest.raises(pcbatch.UsageError, match="argument `x` does not fit JAX's default integer int32"):
        doubled.ask(2**40)
    with jax.enable_x64(True):
        got = asked(*(lambda k=k: doubled.ask(k) for k in (7, 2**53 + 3, 2**63)))
    assert got == [14, 2**54 + 6, "UsageError"]


def test_an_array_that_was_deleted_fails_alone() -> None:
    gone = jnp.ones(2, jnp.float32)
    gone.delete()
    assert asked(lambda: doubled.ask(ONE * jnp.ones(2)), lambda: doubled.ask(gone)) == [[2.0, 2.0], "UsageError"]
    masked = np.ma.masked_array(np.ones(2, np.float32), [True, False])
    assert asked(lambda: doubled.ask(np.ones(2, np.float32)), lambda: doubled.ask(masked)) == [[2.0, 2.0], "UsageError"]


def test_constants_are_told_apart_as_calls_do() -> None:
    zeros = [(a, b) for a in (0.0, -0.0) for b in (0.0, -0.0)]
    got = pcbatch.gather(lambda each: [float(x) for x in signed.ask(each[0], -1.0, each[1])], zeros)
    want = [[float(x) for x in signed.plain(a, -1.0, b)] for a, b in zeros]
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert want[0] != want[1] != want[2]

    @pcbatch.batch(static_argnames=("how",))
    def typed(x: Any, how: Any) -> Any:
        return x, 1 if isinstance(how[0], float) else 0

    assert [int(x[1]) for x in pcbatch.gather(lambda how: typed.ask(3, how), [(2,), (2.0,)])] == [0, 1]


def test_results_are_of_one_example_whatever_out_axes_says() -> None:
    got = asked(*(lambda k=k: transposed.ask(k, 5) for k in (1, 2, 3)))
    assert got == [([k, 10 * k, 100 * k], 6) for k in (1, 2, 3)]
    kept = pcbatch.gather(lambda k: transposed.ask(k, 5, keep=True).value()[0].tolist(), [1, 2])
    assert kept == [[1, 10, 100], [2, 20, 200]]


def test_results_that_may_be_none_are_so_or_not() -> None:
    def want(n: int) -> Any:
        return {"z": n if n % 2 else None, "a": (n, None if n > 3 else (n, n))}

    for keep in (False, True):
        got = pcbatch.gather(lambda n, keep=keep: odd.ask(n, keep=keep), range(6))
        got = [one.value() if keep else one for one in got]
        assert got == [want(n) for n in range(6)] and all(list(one) == ["z", "a"] for one in got), keep


def test_results_have_the_structure_that_the_plain_function_gives() -> None:
    for n, got in zip((2, 0, 3), pcbatch.gather(listed.ask, (2, 0, 3)), strict=True):
        pairs, rows, text, firsts = listed.plain(n)
        assert got[:3] == (pairs, rows, text) and type(got[2]) is bytes
        assert isinstance(got[3], np.ndarray) and got[3].tolist() == firsts


def test_rows_are_used_again_and_hold_keys_and_nothing() -> None:
    rows = pcbatch.gather(lambda k: nothing.ask(k, keep=True), range(150))
    assert rows[149].value() is None
    keys = [jax.random.key(k) for k in range(2)]

    @pcbatch.batch
    def same(key: Any) -> Any:
        return key, 1

    kept = pcbatch.gather(lambda key: same.ask(key, keep=True).value(), keys)
    for got in (kept, pcbatch.gather(same.ask, keys)):
        assert [(int(jax.random.bits(key)), int(n)) for key, n in got] == [(int(jax.random.bits(k)), 1) for k in keys]
    arena = rows[0].arena
    before = len(arena.free)
    del rows
    gc.collect()
    assert len(arena.free) == before + 150


def test_what_is_remembered_keeps_no_results_on_the_device() -> None:
    arenas = []

    def asked(k: int) -> float:
        rows = [doubled.ask(float(k + j), keep=True) for j in range(2)]
        arenas.append(weakref.ref(rows[0].arena))
        return float(summed.ask(rows))

    pcbatch.gather(asked, range(3))
    gc.collect()
    assert arenas
    assert all(arena() is None for arena in arenas)


def test_kept_dicts_have_their_own_order() -> None:
    up = pcbatch.batch(lambda x: {"a": x, "b": 2 * x})
    down = pcbatch.batch(lambda x: {"b": 2 * x, "a": x})
    rows = pcbatch.gather(lambda f: f.ask(ONE, keep=True).value(), [up, down])
    assert [list(row) for row in rows] == [["a", "b"], ["b", "a"]]
    assert all(float(row["b"]) == 2 for row in rows)


def test_a_shared_row_and_an_axis_that_is_not_there_are_refused() -> None:
    row = pcbatch.gather(lambda k: first_state.ask(float(k), keep=True), [1])[0]
    with pytest.raises(pcbatch.UsageError, match=r"argument `weights` is shared, and is a row.*\n.*row\.value\(\)"):
        folded.ask(row, 1.0)
    for state in (row, row.value()):
        with pytest.raises(pcbatch.UsageError, match="in_axes of `state` is 1, and a leaf of one example has 0 axes"):
            second_axis.ask(state)


def test_few_requests_are_remembered_of_a_method() -> None:
    class Rates:
        @pcbatch.batch
        def scaled(self, x: Any) -> Any:
            return x + x

    objects = [Rates() for _ in range(6)]
    assert [float(x) for x in pcbatch.gather(lambda k: objects[k % 6].scaled.ask(float(k)), range(12))] == [
        2.0 * k for k in range(12)
    ]
    recent = objects[0].scaled.batched._of_method(objects[0])._programs.recent
    assert len(recent) == 4


def test_requests_of_many_kinds_are_remembered_while_they_share_few_things() -> None:
    batched = pcbatch.batch(lambda w, xs: sum(xs) * w, in_axes=(None, 0))
    weights = [jnp.float32(k) for k in range(6)]
    pcbatch.gather(lambda k: batched.ask(weights[0], [ONE] * (k + 1)), range(12))
    assert len(batched._programs.recent) == 12
    for w in weights[1:]:
        pcbatch.gather(lambda k, w=w: batched.ask(w, [ONE] * (k + 1)), range(3))
    assert len({each.kind.held for each in batched._programs.recent}) == 4


def test_asking_where_no_number_is_known_is_refused() -> None:
    for transform in (jax.jit, jax.vmap, jax.grad):
        x = jnp.ones(2) if transform is jax.vmap else 1.0
        with pytest.raises(pcbatch.UsageError, match="where JAX traces"):
            transform(doubled.ask)(x)
    with pytest.raises(pcbatch.UsageError, match="`serving` takes batched functions"):
        pcbatch.serving(doubled, len)


def test_the_warning_is_at_the_line_that_asks() -> None:
    @pcbatch.batch
    def lonely(x: Any) -> Any:
        return x

    with pytest.warns(UserWarning, match="`lonely.ask` is called outside") as told:
        lonely.ask(1)
    assert told[0].filename == __file__


class Two(NamedTuple):
    """A structure of two parts."""

    left: Any
    right: Any


FLOATS, OTHERS, LONG = np.arange(3, dtype=np.float32), np.ones(3, np.float32), np.zeros(4, np.float32)
ARGUMENTS: list[Any] = [
    *(FLOATS, OTHERS, jnp.asarray(FLOATS), LONG, FLOATS.astype(np.int32), np.float32(2), 2.0, 3.0, 2, 3, True, 2**40),
    *(None, [], {}, (), [FLOATS], [OTHERS], [LONG], [FLOATS, OTHERS], (FLOATS, OTHERS), Two(FLOATS, OTHERS)),
    *([1, 2], [1, 3], [1.0], [FLOATS, 2], [FLOATS, 2.5], [FLOATS, None], "text", "texts", ["a", "b"], b"ab"),
    *({"a": FLOATS, "b": 1}, {"b": 1, "a": FLOATS}, {"a": OTHERS, "b": 2}, {"a": OTHERS}, {1: FLOATS, 2: OTHERS}),
    *([{"a": FLOATS}, (LONG, [FLOATS])], [{"a": OTHERS}, (LONG, [OTHERS])], [{"a": OTHERS}, (LONG, OTHERS)]),
]


@pytest.mark.parametrize("axes", [0, None], ids=["each its own", "shared"])
def test_a_request_is_remembered_as_what_it_is(axes: int | None) -> None:
    """Whatever was asked before, a request is of the kind, and has the leaves, that a look at all of it finds."""
    batched = pcbatch.batch(lambda other, x: x, in_axes=(0, axes))

    def outcome(make: Any, value: Any) -> Any:
        try:
            made = make(batched, (ONE, value), {}, False)
        except pcbatch.UsageError as error:
            return error.diagnostics[0].title
        return made.kind, [
            (type(leaf), getattr(leaf, "dtype", None), np.asarray(leaf).tolist()) for leaf in made.leaves
        ]

    remembered = 0
    for first in ARGUMENTS:
        for second in ARGUMENTS:
            batched._programs.recent.clear()
            outcome(requests.request_of, first)
            before = len(batched._programs.recent)
            assert outcome(requests.request_of, second) == outcome(requests._new_request, second), (first, second)
            remembered += before and len(batched._programs.recent) == 1
    assert remembered >= len(ARGUMENTS) * 0.6  # among them each beside itself


def test_a_dict_of_shared_weights_with_another_array_is_another() -> None:
    weights = {"w": jnp.ones(3), "layers": [jnp.zeros(2), {"b": 1.5}]}
    batched = pcbatch.batch(lambda w, x: x * w["layers"][1]["b"] + w["w"][0], in_axes=(None, 0))

    def asked(k: int) -> list[float]:
        first = batched.ask(weights, 1.0)
        weights["layers"][1]["b"] = 2.5  # type: ignore[index]
        second = batched.ask(weights, 1.0)
        weights["w"] = jnp.full(3, 7.0)
        return [float(first), float(second), float(batched.ask(weights, float(k)))]

    assert pcbatch.gather(asked, [1]) == [[2.5, 3.5, 9.5]]
