"""Loads and stores in part mean what the primitive means on whole values, in every window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.ops import Expr, Prim
from pcbatch.lowering.typing.trace import JaxprFn
from pcbatch.runtime.vm import indexed_access
from pcbatch.runtime.vm.indexed_access import Cut
from pcbatch.runtime.vm.lane_window import Window, everyone, first
from pcbatch.runtime.vm.operands import Batch, Common, Operand, Whole

pytestmark = pytest.mark.share(3)

LANES, SIZE = 7, 20
MODES = ("clip", "fill", "drop", "promise_in_bounds", None)
MASKS = ([1, 0, 1, 1, 0, 0, 1], [0, 0, 0, 0, 1, 0, 0], [1] * 7)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(LANES, *shape)).astype(np.float32)


def places(low: int, high: int, *shape: int, dtype: Any = np.int32, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, (LANES, *shape)).astype(dtype)


def primitive(fn: Callable[..., Any], dsts: str, ins: str, args: Sequence[Any]) -> Prim:
    """`dsts = fn(ins)`; `args` have the lanes in front."""
    names = tuple(dsts.split())

    def flat(*values: Any) -> Any:
        out = fn(*values)
        return [jnp.asarray(value) for value in (out if len(names) > 1 else (out,))]

    closed = jax.make_jaxpr(flat)(*(jax.ShapeDtypeStruct(arg.shape[1:], arg.dtype) for arg in args))
    expr = Expr("...", tuple(ins.split()), JaxprFn(closed, [None] * len(names)))
    return Prim(names, expr)


def windows(mask: jax.Array) -> list[tuple[Window, jax.Array]]:
    """Every way to look at the lanes of a mask, and which of its places stand for one."""
    dense, careful = everyone(mask), everyone(mask, careful=True)
    few = [first(mask, width) for width in (1, 2, LANES)]
    return [(w, w.here) for w in (dense, careful, *few)] + [(dense, mask & ~mask), (few[2], few[2].here & False)]


class Ran(NamedTuple):
    """A primitive in one window: its results, who took part, and which lane each place computed on."""

    outs: list[Any]
    mask: jax.Array
    source: jax.Array
    part: jax.Array  # the lanes that took part


def check(fn: Callable[..., Any], dsts: str, ins: str, *args: np.ndarray, common: Sequence[int] = ()) -> Cut:
    """Compare a cut primitive with `vmap`, for the lanes that take part; no other lane is touched."""
    op = primitive(fn, dsts, ins, args)
    found = indexed_access.cut(op)
    assert found is not None, "nothing is touched in part"
    arrays = [jnp.asarray(arg) for arg in args]
    lanes = [x[:1].repeat(LANES, 0) if k in common else x for k, x in enumerate(arrays)]
    want = jax.tree.leaves(jax.jit(jax.vmap(op.expr.fn))(*lanes))
    everywhere = jax.jit(lambda mask, arrays: [_run(found, arrays, w, here, common) for w, here in windows(mask)])
    for bits in MASKS:
        for ran in everywhere(jnp.array(bits, bool), arrays):
            _compare(found, arrays, want, ran)
    return found


def _run(found: Cut, arrays: Sequence[jax.Array], window: Window, mask: jax.Array, common: Sequence[int]) -> Ran:
    operands: list[Operand] = [
        Whole(x) if k in found.registers else Common(x[0]) if k in common else Batch(window.read(x))
        for k, x in enumerate(arrays)
    ]
    outs = [_array(out) for out in indexed_access.run(found, operands, window, mask)[0]]
    return Ran(outs, mask, window.source, window.write(jnp.zeros(LANES, bool), mask, mask))


def _compare(found: Cut, arrays: Sequence[jax.Array], want: Sequence[jax.Array], ran: Ran) -> None:
    stored, here = dict(found.stored), np.asarray(ran.mask)
    for k, out in enumerate(ran.outs):
        if k in stored:
            old = np.asarray(arrays[stored[k]])
            part = np.asarray(ran.part).reshape(-1, *(1,) * (old.ndim - 1))
            np.testing.assert_array_equal(out, np.where(part, np.asarray(want[k]), old))
        else:
            out = np.broadcast_to(np.asarray(out), (len(here), *want[k].shape[1:]))
            np.testing.assert_array_equal(out[here], np.asarray(want[k])[np.asarray(ran.source)][here])


def _array(operand: Operand) -> Any:
    return operand.array if isinstance(operand, Whole) else operand.value


XS = numbers(SIZE)
ROWS = numbers(SIZE, 3)
INSIDE = places(0, SIZE)
ANYWHERE = places(-3 * SIZE, 3 * SIZE)


class TestLoads:
    """`y = xs[i]` and its like."""

    @pytest.mark.parametrize("mode", [m for m in MODES if m != "drop"])
    @pytest.mark.parametrize("where", ["inside", "anywhere"])
    def test_one_element(self, mode: str | None, where: str) -> None:
        index = INSIDE if where == "inside" or mode == "promise_in_bounds" else ANYWHERE
        check(lambda xs, i: xs.at[i].get(mode=mode), "y", "xs i", XS, index)

    def test_subscript(self) -> None:
        check(lambda xs, i: xs[i], "y", "xs i", XS, ANYWHERE)
        check(lambda xs, i: xs[i], "y", "xs i", ROWS, ANYWHERE)

    @pytest.mark.full_only
    @pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32])
    def test_indices_of_any_type(self, dtype: type[np.generic]) -> None:
        low, high = (0, 100) if np.issubdtype(dtype, np.unsignedinteger) else (-60, 60)
        check(lambda xs, i: xs[i], "y", "xs i", XS, places(low, high, dtype=dtype))
        found = places(low, high, dtype=dtype)
        check(lambda xs, i: jax.lax.dynamic_slice(xs, (i,), (4,)), "y", "xs i", XS, found)

    def test_a_slice_that_starts_out_of_range_is_moved(self) -> None:
        starts = np.array([-50, -21, -20, -1, 0, 17, 90], np.int32)
        check(lambda xs, i: jax.lax.dynamic_slice(xs, (i,), (4,)), "y", "xs i", XS, starts)
        check(lambda xs, i: jax.lax.dynamic_slice(xs, (i, i), (4, 2)), "y", "xs i", ROWS, starts)

    def test_a_slice_that_starts_at_a_great_number(self) -> None:
        starts = np.array([2**31 + 5, 2**32 - 1, 0, 3, 19, 21, 2**31], np.uint32)
        check(lambda xs, i: jax.lax.dynamic_slice(xs, (i,), (4,)), "y", "xs i", XS, starts)

    def test_a_slice_of_a_long_array_by_a_short_index(self) -> None:
        starts = np.array([0, 255, 200, 3, 254, 128, 127], np.uint8)
        check(lambda xs, i: jax.lax.dynamic_slice(xs, (i,), (9,)), "y", "xs i", numbers(600), starts)

    @pytest.mark.full_only
    def test_several_at_once(self) -> None:
        check(lambda xs, i: xs[i], "y", "xs i", XS, places(-SIZE, SIZE, 5))
        check(lambda xs, i, j: xs[i, j], "y", "xs i j", ROWS, places(0, SIZE, 4), places(0, 3, 4))
        check(lambda xs, i: xs[i, :2] + xs[:, i % 3][i], "y", "xs i", ROWS, places(0, SIZE))

    def test_batching_dimensions(self) -> None:
        def each(xs, i):
            return jax.vmap(lambda row, k: row[k])(xs, i)

        check(each, "y", "xs i", ROWS, places(0, 3, SIZE))

    def test_a_common_index(self) -> None:
        check(lambda xs, i: xs[i] * 2, "y", "xs i", XS, INSIDE, common=[1])

    def test_a_computed_index_and_result(self) -> None:
        check(lambda xs, i, v: jnp.sin(xs[2 * i % SIZE]) + v, "y", "xs i v", XS, INSIDE, numbers())


class TestStores:
    """`xs = xs.at[i].set(v)` and its like."""

    @pytest.mark.share(2)
    @pytest.mark.parametrize("name", ["set", "add", "multiply", "min", "max"])
    @pytest.mark.parametrize("mode", ["drop", None])
    def test_one_element(self, name: str, mode: str | None) -> None:
        def store(xs, i, v):
            return getattr(xs.at[i], name)(v, mode=mode)

        found = check(store, "xs", "xs i v", XS, ANYWHERE, numbers())
        assert found.stored == ((0, 0),)

    @pytest.mark.parametrize("mode", ["clip", "promise_in_bounds"])
    def test_other_modes_are_not_masked_by_an_index(self, mode: str) -> None:
        op = primitive(lambda xs, i, v: xs.at[i].set(v, mode=mode), "xs", "xs i v", (XS, INSIDE, numbers()))
        assert indexed_access.cut(op) is None

    def test_a_store_without_an_index_is_none(self) -> None:
        op = primitive(lambda xs, v: xs.at[:].set(v), "xs", "xs v", (XS, numbers()))
        assert indexed_access.cut(op) is None

    @pytest.mark.full_only
    def test_rows_and_several_at_once(self) -> None:
        check(lambda xs, i, v: xs.at[i].set(v), "xs", "xs i v", ROWS, ANYWHERE, numbers(3))
        check(lambda xs, i, v: xs.at[i].add(v), "xs", "xs i v", XS, places(-SIZE, SIZE, 6), numbers(6))
        check(lambda xs, i, v: xs.at[i, 1:].set(v), "xs", "xs i v", ROWS, INSIDE, numbers(2))

    def test_batching_dimensions(self) -> None:
        def each(xs, i, v):
            return jax.vmap(lambda row, k, x: row.at[k].set(x))(xs, i, v)

        check(each, "xs", "xs i v", ROWS, places(0, 3, SIZE), numbers(SIZE))

    def test_unique_and_sorted_promises(self) -> None:
        index = np.sort(np.stack([np.random.default_rng(k).permutation(SIZE)[:5] for k in range(LANES)]), 1)

        def store(xs, i, v):
            return xs.at[i].set(v, unique_indices=True, indices_are_sorted=True)

        check(store, "xs", "xs i v", XS, index.astype(np.int32), numbers(5))

    def test_common_values(self) -> None:
        check(lambda xs, i, v: xs.at[i].set(v), "xs", "xs i v", XS, INSIDE, numbers(), common=[1, 2])
        check(lambda xs, i: xs.at[i].set(1.5), "xs", "xs i", XS, INSIDE, common=[1])

    def test_a_chain(self) -> None:
        def chain(xs, i, v):
            return xs.at[i].set(v).at[i + 1].add(v).at[0].set(xs[i - 2])

        assert check(chain, "xs", "xs i v", XS, INSIDE, numbers()).stored == ((0, 0),)

    def test_reads_before_and_after(self) -> None:
        def both(xs, i, v):
            old = xs[i]
            xs = xs.at[i].set(v)
            return xs, old, xs[i], xs[i - 1]

        check(both, "xs old new other", "xs i v", XS, INSIDE, numbers())

    def test_a_swap_of_elements(self) -> None:
        def swap(xs, i, j):
            return xs.at[i].set(xs[j]).at[j].set(xs[i])

        check(swap, "xs", "xs i j", XS, INSIDE, places(0, SIZE, seed=9))

    def test_two_registers(self) -> None:
        def move(xs, ys, i, j):
            return xs.at[i].set(ys[j]), ys.at[j].set(xs[i])

        found = check(move, "xs ys", "xs ys i j", XS, numbers(SIZE, seed=5), INSIDE, places(0, SIZE, seed=9))
        assert set(found.stored) == {(0, 0), (1, 1)}

    def test_registers_that_change_places_are_values(self) -> None:
        ys = numbers(SIZE, seed=5)
        op = primitive(lambda xs, ys, i: (ys.at[i].set(0.0), xs.at[i].set(1.0)), "xs ys", "xs ys i", (XS, ys, INSIDE))
        assert indexed_access.cut(op) is None

    def test_a_store_that_is_only_read(self) -> None:
        found = check(lambda xs, i, v: xs.at[i].set(v)[i - 1], "y", "xs i v", XS, INSIDE, numbers())
        assert found.stored == ()

    def test_another_name_is_a_copy(self) -> None:
        op = primitive(lambda xs, i, v: xs.at[i].set(v), "ys", "xs i v", (XS, INSIDE, numbers()))
        assert indexed_access.cut(op) is None

    @pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.bool_, np.int32, np.float16, np.complex64])
    def test_any_type(self, dtype: type[np.generic]) -> None:
        xs, v = (numbers(*shape) * 3 for shape in ((SIZE,), ()))
        check(lambda xs, i, v: xs.at[i].set(v), "xs", "xs i v", xs.astype(dtype), ANYWHERE, v.astype(dtype))

    def test_a_short_index_beyond_255_lanes(self) -> None:
        lanes = 300
        xs = jnp.zeros((lanes, SIZE), jnp.int32)
        index = jnp.arange(lanes, dtype=jnp.uint8) % SIZE
        numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))

        def store(xs, i):
            return jax.lax.scatter(xs, i[None], jnp.int32(1), numbers, mode="drop")

        op = primitive(store, "xs", "xs i", (xs, index))
        found = indexed_access.cut(op)
        assert found is not None
        mask = jnp.arange(lanes) % 2 == 0
        window = everyone(mask)
        ((out,), _) = indexed_access.run(found, [Whole(xs), Batch(index)], window, mask)
        assert isinstance(out, Whole)
        want = np.where(np.asarray(mask)[:, None], np.eye(SIZE, dtype=np.int32)[np.asarray(index)], 0)
        assert np.array_equal(out.array, want)


def test_a_register_that_is_given_back_is_a_value() -> None:
    """Though it stays where it is because another operation touches it in part."""
    ws = numbers(SIZE, seed=4)
    op = primitive(lambda xs, ws, i: (xs, ws[i]), "ys y", "xs ws i", (XS, ws, INSIDE))
    found = indexed_access.cut(op)
    assert found is not None and found.registers == {1}
    mask = jnp.array(MASKS[0], bool)
    window = everyone(mask)
    operands = [Whole(jnp.asarray(XS)), Whole(jnp.asarray(ws)), Batch(jnp.asarray(INSIDE))]
    whole, _ = indexed_access.run(found, operands, window, mask)[0]
    assert isinstance(whole, Batch)


def test_small_arrays_are_moved_whole() -> None:
    op = primitive(lambda xs, i: xs[i], "y", "xs i", (numbers(indexed_access.MIN_SIZE - 1), INSIDE))
    assert indexed_access.cut(op) is None


def test_keys_are_moved_whole() -> None:
    keys = jax.random.split(jax.random.key(0), (LANES, SIZE))
    closed = jax.make_jaxpr(lambda xs, i: [xs[i]])(keys[0], INSIDE[0])
    assert indexed_access.cut(Prim(("y",), Expr("...", ("xs", "i"), JaxprFn(closed, [None])))) is None


def test_a_constant_that_is_a_result_beside_an_element() -> None:
    constant = np.arange(40, dtype=np.int32)

    def pair(xs, i):
        return xs[i], jnp.asarray(constant)

    @pcbatch.batch
    def sums(xs, n):
        total, table = 0, jnp.zeros(40, jnp.int32)
        while n > 0:
            n = n - 1
            x, table = pair(xs, n)
            total = total + x
            xs = xs.at[n].set(total)
        return total + table[3]

    xs, ns = np.arange(192, dtype=np.int32).reshape(3, 64), np.array([3, 10, 60], np.int32)
    assert sums(xs, ns).tolist() == [int(sums.plain(jnp.asarray(x), n)) for x, n in zip(xs, ns, strict=True)]
