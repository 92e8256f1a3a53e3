"""Values as words: every type comes back with every bit."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcbatch.ir.types import ArrayType
from pcbatch.runtime.vm import word_packing

pytestmark = pytest.mark.share(3)

FULL = "bool uint8 uint16 uint32 int8 int16 int32 float16 bfloat16 float32 complex64".split()
EIGHT = "float8_e3m4 float8_e4m3 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2 float8_e5m2fnuz".split()
NARROW = ["int2", "int4", "uint2", "uint4"]
WIDE = ["int64", "uint64", "float64", "complex128"]
SHAPES = [(), (3,), (2, 3), (0,), (4, 0, 2), (1, 1)]


def bits(value: jax.Array) -> np.ndarray:
    """The bytes of an array, as NumPy has them."""
    array = np.ascontiguousarray(np.asarray(value))
    return array.view(np.uint8) if array.dtype.itemsize == 1 else np.frombuffer(array.tobytes(), np.uint8)


def back(value: jax.Array) -> jax.Array:
    """Packed and unpacked in a compiled program."""
    type_ = ArrayType(str(value.dtype), tuple(value.shape[1:]))

    def there_and_back(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        packed = word_packing.pack(x, x.shape[0], word_packing.word(type_))
        return packed, word_packing.unpack(packed, type_)

    packed, again = jax.jit(there_and_back)(value)
    word = word_packing.word(type_)
    assert packed.shape == (value.shape[0], word_packing.width(type_, word)) and packed.dtype == word
    assert again.shape == value.shape and again.dtype == value.dtype
    return again


def random_bits(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Any bits at all, so also NaNs with payloads, infinities, negative zeros, subnormal numbers."""
    kind = jnp.dtype(dtype)
    random = np.random.default_rng(seed)
    if kind == np.bool_:
        return random.integers(0, 2, shape).astype(bool)
    if dtype in NARROW:
        info = jnp.iinfo(kind)
        return random.integers(int(info.min), int(info.max) + 1, shape).astype(kind)
    return np.frombuffer(random.bytes(int(np.prod(shape)) * kind.itemsize), kind).reshape(shape)


@pytest.fixture
def x64() -> Iterator[None]:
    """64-bit types switched on."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*FULL, *EIGHT, *NARROW])
def test_all_bits_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    value = jnp.asarray(random_bits(dtype, (5, *shape)))
    assert np.array_equal(bits(back(value)), bits(value))


@pytest.mark.parametrize("shape", SHAPES[:3])
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.usefixtures("x64")
def test_all_bits_of_wide_types_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    value = jnp.asarray(random_bits(dtype, (5, *shape)))
    assert value.dtype == dtype
    assert np.array_equal(bits(back(value)), bits(value))


@pytest.mark.parametrize("dtype", [*EIGHT, "int8", "uint8"])
def test_each_byte_comes_back(dtype: str) -> None:
    value = jnp.asarray(np.arange(256, dtype=np.uint8).view(jnp.dtype(dtype)))
    assert np.array_equal(bits(back(value)), np.arange(256))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int16"])
def test_each_pair_of_bytes_comes_back(dtype: str) -> None:
    value = jnp.asarray(np.arange(65536, dtype=np.uint16).view(jnp.dtype(dtype)))
    assert np.array_equal(np.asarray(back(value)).view(np.uint16), np.arange(65536))


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8))
def test_floats_keep_their_payloads(numbers: list[int]) -> None:
    value = np.array(numbers, np.uint32).view(np.float32)
    assert np.asarray(word_packing.pack(jnp.asarray(value), len(numbers), word_packing.SMALL))[:, 0].tolist() == numbers
    type_ = ArrayType("float32", ())
    again = np.asarray(word_packing.unpack(jnp.asarray(numbers, jnp.uint32)[:, None], type_))
    assert again.view(np.uint32).tolist() == numbers


@pytest.mark.parametrize("dtype", ["float4_e2m1fn", "float8_e8m0fnu"])
def test_other_narrow_floats(dtype: str) -> None:
    value = jnp.asarray(np.array([1.0, 2.0, 4.0, 0.5], np.float32).astype(jnp.dtype(dtype)))
    assert np.asarray(back(value)).astype(np.float32).tolist() == [1.0, 2.0, 4.0, 0.5]


def test_a_complex_number_takes_two_words() -> None:
    type_ = ArrayType("complex64", (3,))
    assert word_packing.word(type_) == np.uint32 and word_packing.width(type_, word_packing.SMALL) == 6


@pytest.mark.usefixtures("x64")
def test_eight_bytes_take_one_long_word() -> None:
    for dtype, width in (("float64", 1), ("int64", 1), ("uint64", 1), ("complex128", 2)):
        type_ = ArrayType(dtype, ())
        assert word_packing.word(type_) == np.uint64 and word_packing.width(type_, word_packing.LARGE) == width
