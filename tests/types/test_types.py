"""Types: every row of the table, `jax.vmap` and `jnp.where` as oracles, in both promotion modes, 32 and 64 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError, UsageError
from pcbatch.data.optional import Optional
from pcbatch.ir.types import LONG, ArrayType, parse_type
from pcbatch.lowering.typing.abstract_values import Abstract, JoinError, Known
from pcbatch.lowering.typing.jax_types import as_result, from_aval, is_key, to_aval
from pcbatch.lowering.typing.join_types import join
from tests.programs.compare import to_numpy
from tests.types.type_rows import TABLE, Row, widened

pytestmark = pytest.mark.long

MODES = [("standard", False), ("strict", False), ("standard", True), ("strict", True)]
every_mode = pytest.mark.parametrize(("mode", "x64"), MODES)
N = np.array([-1, 0, 2], np.int32)
X = np.array([0.5, -1.0, 2.0], np.float32)


def avals(ins: str) -> list[Any]:
    """Descriptions of batched arguments, from `"i32[] ~f32[3]"`."""
    types = [parse_type(widened(text) if jax.config.jax_enable_x64 else text) for text in ins.split()]
    return [to_aval(type_, (3,)) for type_ in types if type_ is not None]


class Shown:
    """A leaf that prints as its type."""

    def __init__(self, type_: Any) -> None:
        self.text = str(type_)

    def __repr__(self) -> str:
        return self.text


def outcome(fn: Callable[..., Any], ins: str) -> str:
    """The type of the result as text, or the code of the refusal."""
    try:
        result = pcbatch.batch(fn).lower(*avals(ins)).stages.result
    except CompileError as error:
        assert str(error)
        return error.diagnostics[0].code
    return str(jax.tree.unflatten(result.tree, [Shown(leaf) for leaf in result.leaves]))


def label(row: Row) -> str:
    return f"{row.fn.__name__}-{row.ins}"


@pytest.mark.share(2)
@pytest.mark.parametrize(("mode", "x64"), MODES)
@pytest.mark.parametrize("row", TABLE, ids=label)
def test_the_rule(row: Row, mode: str, x64: bool) -> None:
    with jax.enable_x64(x64), jax.numpy_dtype_promotion(mode):
        assert outcome(row.fn, row.ins) == row.expected(mode, x64)


def concrete(type_: ArrayType) -> Any:
    """Three lanes of a type."""
    ones = [1] * len(type_.shape)
    if is_key(type_):
        impl = {"key<fry>": "threefry2x32", "key<rbg>": "rbg"}[type_.dtype]
        return jnp.broadcast_to(jax.random.split(jax.random.key(1, impl=impl), 3).reshape(3, *ones), (3, *type_.shape))
    values = jnp.broadcast_to(jnp.arange(3.0).reshape(3, *ones) - 1.0, (3, *type_.shape))
    return as_result(values.astype(type_.dtype), type_)


def wide(leaf: Any) -> np.ndarray:
    """Any leaf as complex numbers."""
    return np.asarray(to_numpy(leaf)).astype(np.complex128)


TEXT = "a text of the lane"
RUNNING = [row for row in TABLE if not row.standard.startswith("PCB") and row.standard != TEXT]


@pytest.mark.share(8)
@pytest.mark.promotion("standard")
@pytest.mark.parametrize("row", RUNNING, ids=label)
def test_what_runs_has_the_type_and_the_values_of_the_plain_function(row: Row) -> None:
    args = [concrete(type_) for text in row.ins.split() if (type_ := parse_type(text)) is not None]
    batched = pcbatch.batch(row.fn)
    result = batched(*args)
    leaves, tree = jax.tree.flatten(result)
    assert str(jax.tree.unflatten(tree, [Shown(from_aval(leaf, 1)) for leaf in leaves])) == row.standard
    for lane in range(3):
        plain = batched.plain(*(arg[lane] for arg in args))
        here = jax.tree.map(lambda part, lane=lane: part[lane], result, is_leaf=lambda x: isinstance(x, Optional))
        assert jax.tree.structure(plain) == jax.tree.structure(here)
        for leaf, want in zip(jax.tree.leaves(here), jax.tree.leaves(plain), strict=True):
            np.testing.assert_allclose(wide(leaf), wide(want), rtol=1e-2)
            assert promoted(from_aval(leaf), want)


def promoted(type_: ArrayType, plain: Any) -> bool:
    """Is the type of the lanes the one that JAX promotes the plain value's and itself to?"""
    one = Abstract(jax.tree.structure(0), (type_,))
    other = Known(plain) if isinstance(plain, bool | int | float | complex) else from_aval(plain)
    return join(one, Abstract(one.tree, (other,))).leaves == one.leaves


COUNTING: list[Callable[[Any], Any]] = [lambda x: -x, lambda x: {"a": x, "b": [x + x, None]}]  # bools count as Python's
STRAIGHT: list[Callable[[Any], Any]] = [
    lambda x: 1,
    lambda x: (True, 0.5, 1j),
    lambda x: x,
    lambda x: x + 1,
    lambda x: x * 0.5,
    lambda x: x / 2,
    *COUNTING,
    lambda x: x > 0,
    lambda x: jnp.asarray(x, jnp.float16),
    lambda x: jnp.zeros(3) + 1,
    lambda x: jnp.where(x > 0, 1, 0),
    lambda x: np.float32(1.5),
    lambda x: x.shape,
]


@pytest.mark.share(3)
@every_mode
@pytest.mark.parametrize("ins", ["i32[]", "~i32[]", "u8[]", "f32[2]", "~f32[]", "bf16[]", "bool[]", "c64[]", "i4[]"])
def test_straight_programs_have_the_types_of_vmap(ins: str, mode: str, x64: bool) -> None:
    with jax.enable_x64(x64), jax.numpy_dtype_promotion(mode):
        for fn in STRAIGHT if ins != "bool[]" else [fn for fn in STRAIGHT if fn not in COUNTING]:
            (aval,) = avals(ins)
            try:
                expected = jax.eval_shape(jax.vmap(fn), aval)
            except Exception:
                assert outcome(fn, ins) == "PCB303"
            else:
                assert outcome(fn, ins) == str(jax.tree.map(lambda out: Shown(from_aval(out, 1)), expected))


@pytest.mark.share(4)
@every_mode
def test_a_join_is_what_where_gives(mode: str, x64: bool) -> None:
    names = [*LONG, "~i32", "~f32", "~c64", "key<fry>", "key<rbg>"]
    with jax.enable_x64(x64), jax.numpy_dtype_promotion(mode):
        types = [parse_type(f"{widened(name) if x64 else name}[]") for name in names if x64 or "64" not in name]
        for place, one in enumerate(types):
            for other in types[place:]:
                assert one is not None and other is not None
                assert joined(one, other) == joined(other, one) == where(one, other), (one, other)


def joined(one: ArrayType, other: ArrayType) -> ArrayType | None:
    tree = jax.tree.structure(0)
    try:
        (leaf,) = join(Abstract(tree, (one,)), Abstract(tree, (other,))).leaves
    except JoinError as error:
        assert error.kind == ("key" if is_key(one) or is_key(other) else "dtype")
        return None
    assert isinstance(leaf, ArrayType)
    return leaf


def where(one: ArrayType, other: ArrayType) -> ArrayType | None:
    if one == other:
        return one
    try:
        return from_aval(jax.eval_shape(lambda a, b: jnp.where(True, a, b), to_aval(one), to_aval(other)))
    except Exception:
        return None


def first_or_second(n, a, b):
    if n > 0:
        return a
    return b


def test_one_object_in_all_modes() -> None:
    batched = pcbatch.batch(first_or_second)

    def dtype() -> str:
        u, i = np.array([1, 2, 3], np.uint32), np.array([1, 2, 3], np.int32)
        return str(batched(N, u, i).dtype)

    for _ in range(2):
        with jax.numpy_dtype_promotion("standard"):
            assert dtype() == "int32"
            with jax.enable_x64(True):
                assert dtype() == "int64"
        with pytest.raises(CompileError, match="PCB302"):
            dtype()


def test_results_are_weak_in_every_strategy_and_without_lanes() -> None:
    for strategy in ("pc", "local"):
        batched = pcbatch.batch(lambda n: 1, strategy=strategy)
        for value in (
            batched(N),
            batched(N[:0]),
            batched.run(N).value,
            jax.jit(batched)(N),
            jax.vmap(batched)(N[None]),
        ):
            assert value.weak_type and value.dtype == np.int32


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("value", [np.array(["a", "b", "c"]), np.array([None] * 3), N.astype("datetime64[D]")])
def test_arrays_that_jax_does_not_have(value: np.ndarray, shared: bool) -> None:
    with pytest.raises(UsageError, match="PCB405.*which JAX does not have"):
        pcbatch.batch(lambda n, x: n, in_axes=(0, None if shared else 0))(N, value)


def test_a_shared_integer_that_is_too_large() -> None:
    batched = pcbatch.batch(lambda n, k: n + k, in_axes=(0, None))
    with pytest.raises(UsageError, match="PCB405"):
        batched(N, 2**40)
    with jax.enable_x64(True):
        assert batched(N.astype(np.int64), 2**40).tolist() == [2**40 - 1, 2**40, 2**40 + 2]


@pytest.mark.parametrize("dtype", ["int4", "uint2", "float8_e4m3fn", "bfloat16", "bool", "complex64", "uint32"])
def test_failed_lanes_of_every_kind_of_type(dtype: str) -> None:
    def endless(n, x):
        while n != 0:
            n = n + 1
        return x

    result = pcbatch.batch(endless, max_steps=9).run(np.array([0, 1], np.int32), jnp.ones(2, dtype))
    assert result.status.tolist() == [int(pcbatch.Status.OK), int(pcbatch.Status.STEP_LIMIT)]
    assert result.value.dtype == dtype
    failed = wide(result.value[1])
    assert np.isnan(failed) if jnp.issubdtype(dtype, jnp.inexact) else failed.real <= 0


@jax.tree_util.register_pytree_node_class
class Tagged:
    """A pytree whose static part has an exotic equality."""

    def __init__(self, value: Any, tag: np.ndarray) -> None:
        self.value, self.tag = value, tag

    def tree_flatten(self) -> tuple[tuple[Any], np.ndarray]:
        return (self.value,), self.tag

    @classmethod
    def tree_unflatten(cls, tag: np.ndarray, children: tuple[Any]) -> Tagged:
        return cls(children[0], tag)


def test_structures_that_cannot_be_compared_differ() -> None:
    first, second = np.arange(3), np.arange(3)

    def tags(n):
        if n > 0:
            tagged = Tagged(n, first)
        else:
            tagged = Tagged(n, second)
        return tagged.value

    with pytest.raises(CompileError, match="PCB301") as info:
        pcbatch.batch(tags)(N)
    assert "object at 0x" not in str(info.value)


def test_the_way_out_of_none() -> None:
    def best(n):
        found, largest = False, jnp.zeros_like(n)
        while n > 0:
            found, largest = True, n
            n -= 1
        return found, largest

    found, largest = pcbatch.batch(best)(N)
    assert found.tolist() == [False, False, True] and largest.tolist() == [0, 0, 1]


@pytest.mark.parametrize("text", [f"{weak}{name}[2]" for name in LONG for weak in ("", "~")])
def test_types_are_read_as_they_are_printed(text: str) -> None:
    type_ = parse_type(text)
    assert type_ is not None and str(type_) == text
    if not type_.weak and "64" not in text and "128" not in text:
        assert str(jax.make_jaxpr(lambda x: x)(to_aval(type_)).in_avals[0].str_short(short_dtypes=True)) == text
