"""The scalars of a lane in two arrays."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.scalar.native import in_one_function
from pcbatch.runtime.scalar.words import ARRAYS, Words

LONG = {"i64": np.int64(-(2**40)), "u64": np.uint64(2**63 + 5), "f64": np.float64(0.1)}
SHORT = {
    "bool": np.True_,
    "i8": np.int8(-7),
    "u8": np.uint8(200),
    "i32": np.int32(-5),
    "u32": np.uint32(2**31 + 3),
    "f32": np.float32(-0.0),
    "nan": np.float32("nan"),
}
OTHERS = {"c64": np.complex64(1 - 2j), "f16": np.float16(0.5), "row": np.arange(3, dtype=np.float32)}


def lane() -> dict[str, jax.Array]:
    return {key: jnp.asarray(value) for key, value in (SHORT | LONG | OTHERS).items()}


def same(a: dict[str, jax.Array], b: dict[str, jax.Array]) -> bool:
    """Whether two states are equal to the bit, in dtypes too."""
    bits = [{key: (v.dtype, np.asarray(v).tobytes()) for key, v in each.items()} for each in (a, b)]
    return bits[0] == bits[1]


@pytest.mark.parametrize("x64", [False, True])
class TestWords:
    def test_there_and_back(self, x64: bool) -> None:
        with jax.enable_x64(x64):
            state = lane()
            words = Words.of(state)
            packed = words.packed(state)
            assert packed.keys() == OTHERS.keys() | (ARRAYS.keys() if x64 else {"words"})
            assert packed["words"].shape == ((len(SHORT),) if x64 else (len(SHORT) + len(LONG),))
            assert same(words.unpacked(packed), state)

    def test_scalars_are_read_and_stored(self, x64: bool) -> None:
        with jax.enable_x64(x64):
            state = lane()
            words = Words.of(state)

            def step(packed: dict[str, jax.Array]) -> dict[str, jax.Array]:
                rest, one = words.read(packed, ["i32", "f32", "f64", "bool", "row", "absent"])
                assert {"i32", "f32", "f64", "bool"} <= one.keys()
                new = {"i32": one["i32"] * 2, "bool": ~one["bool"], "f64": one["f64"] + 1, "row": one["row"] * 2}
                return words.stored(rest, one, new)

            def run(packed: dict[str, jax.Array]) -> tuple[dict[str, jax.Array], jax.Array]:
                return jax.lax.fori_loop(0, 3, lambda _, c: step(c), packed), jnp.int32(0)

            found = words.unpacked(jax.jit(in_one_function(run))(words.packed(state))[0])
            want = state | {"i32": state["i32"] * 8, "bool": ~state["bool"], "row": state["row"] * 8}
            want["f64"] = state["f64"] + 1 + 1 + 1
            assert same(found, want)


def _walk(n, step):
    low = high = n
    even = 0
    while high < 100:
        if high % 2:
            low, high = high, high + step
        else:
            even += 1
            low, high = high, high + low % 3 + 1
    return low, high, even


def test_no_loop_copies_the_words() -> None:
    """XLA stores into them in place."""
    f = pcbatch.batch(_walk, plan=pcbatch.Plan(emitter="scalar"))
    ns, steps = np.arange(8, dtype=np.int32), np.full(8, 3, np.int32)
    text = f.lower(ns, steps).compile().as_text()
    (width,) = set(re.findall(r"s32\[(\d+)\]\S* dynamic-update-slice\(", text)) - {"8"}
    assert not re.findall(rf"s32\[{width}\]\S* copy\(", text)
    found = f(ns, steps)
    assert [tuple(int(part[k]) for part in found) for k in range(8)] == [_walk(int(n), 3) for n in ns]
