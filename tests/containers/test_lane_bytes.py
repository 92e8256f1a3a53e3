"""Bytes of the lane equal Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import unlike_plain

pytestmark = pytest.mark.share(2)

DATA = [b"hello", b"", b"\xff\x00a", b"abc"]
TABLE = {b"abc": 1, b"hello": 2}


def values(d):
    a = d
    a += b"x"
    return (
        (sum(d), len(d), d[::-1], d + b"!", b"!" + d, d * 2, a, list(d), sorted(d, reverse=True)),
        (d == b"abc", d != b"abc", d < b"b", d == "abc", d == (97, 98, 99), [d] == [b"abc"], (d, 1) == (b"abc", 1)),
        (97 in d, b"b" in d, d.find(b"l", 3), d.rfind(108), d.count(b"l"), d.count(97), d.startswith((b"a", b"h"))),
        (d.decode("latin-1"), isinstance(d, bytes), isinstance(d, tuple), not d, list(reversed(d)), min(d, b"b")),
        (bytes([x ^ 1 for x in d]), bytes(x // 2 for x in d), bytes(len(d)), bytes(reversed(d)), [b"", d]),
        (TABLE.get(d, 0), d in TABLE, d in {b"abc"}, d in (b"abc", b"x"), d[1:], d[-2:], [x for x in zip(d, d[1:])]),
    )


def known(d):
    n = len(d)
    if n > 3:
        found = b"many"
    else:
        found = d + b"."
    first, *rest = found
    return b"abcdefgh"[n], b"abcdefgh"[n:], n + 96 in b"abc", b"ab" * n, str(n).encode(), found, first, rest


def keys(d):
    seen = {}
    for k in range(len(d)):
        key = d[k : k + 2]
        seen[key] = seen.get(key, 0) + 1
        seen[bytes([k % 2])] = k
    return [seen[k] for k in seen], b"bc" in seen, (98, 99) in seen


def hashed(d):
    h = 5381
    for byte in f"key{len(d)}".encode() + d:
        h = (h * 33 ^ byte) & 0xFFFF
    return h


def caught(d):
    try:
        return bytes([x + 1 for x in d])[0]
    except ValueError:
        return -1
    except IndexError:
        return -2


def lanes(found: Any, count: int) -> list[Any]:
    def is_leaf(x: Any) -> bool:
        return hasattr(x, "tolist")

    return [jax.tree.map(lambda x: x.tolist()[k] if is_leaf(x) else x, found, is_leaf=is_leaf) for k in range(count)]


def digits(d):
    marks = d.hex("-"), d.hex(":", 2), d.hex(b" ", -3), d.hex("-", 0), (d + b"abc").hex("_", 4)
    return d.hex(), bytearray(d).hex(), *marks, d[1:].hex(), d.hex().upper(), str(d[:1] * 0 + b"ab", "ascii")


def numbers(d):
    few, n = d[:2], len(d)
    both = int.from_bytes(few, "little"), int.from_bytes(few, "big"), int.from_bytes(few), int.from_bytes([n, 1], "big")
    signs = [int.from_bytes(few, order, signed=True) for order in ("big", "little")]
    wide = int.from_bytes(b"\0\0\0\0\0\0\0\0\0" + few, "big"), int.from_bytes(b"\xff" * 9 + d[:1], signed=True)
    return both, signs, wide, int.from_bytes(few + bytes(n), "little")


def bytes_of_numbers(d):
    n = len(d)
    x = n * 1000 + 3
    known = x.to_bytes(4, "big"), x.to_bytes(9, "little"), n.to_bytes(), n.to_bytes(length=2, byteorder="big").hex()
    signed = [(7 - x).to_bytes(size, order, signed=True) for size in (2, 9) for order in ("big", "little")]
    size = (x.bit_length() + 7) // 8
    return known, signed, x.to_bytes(size, "big"), x.to_bytes(n + 2, "little"), (n > 3).to_bytes(1, "big")


def too_small(d):
    found = []
    for x in (127, 128, 255, 256, -1, -128, -129, 0):
        for size in (1, 0):
            for signed in (True, False):
                try:
                    found.append((len(d) * 0 + x).to_bytes(size, "big", signed=signed)[0])
                except OverflowError:
                    found.append(-1)
                except IndexError:
                    found.append(-2)
    return found


BYTES = [values, known, keys, hashed, caught, digits, numbers, bytes_of_numbers, too_small]


@pytest.mark.parametrize("fn", BYTES, ids=lambda fn: fn.__name__)
def test_bytes_equal_those_of_python(fn: Callable[..., Any]) -> None:
    assert lanes(pcbatch.batch(fn)(pcbatch.ragged(DATA)), len(DATA)) == [fn(d) for d in DATA]


def test_a_lane_raises_what_python_raises() -> None:
    def raising(d):
        return d[0], TABLE[d], bytes([x + 1 for x in d]), d.decode()

    result = pcbatch.batch(raising).run(pcbatch.ragged(DATA))
    assert [int(s) == int(pcbatch.Status.OK) for s in result.status] == [True, False, False, True]


@pytest.mark.parametrize(
    "fn, message",
    [
        (lambda d: d.append(1), "has no attribute 'append'"),
        (lambda d: d.split(b"l"), "`split` is not there"),
        (lambda d: bytearray(d).insert(0, 1), "`insert` is not there"),
        (lambda d: bytearray(d).__setitem__(0, 0.5), "cannot be interpreted as an integer"),
        (lambda d: "a" in d, "bytes-like object is required"),
        (lambda d: d.find("a"), "bytes-like object is required"),
        (lambda d: d + "a", "unsupported operand"),
        (lambda d: bytes([len(d) * 0.5]), "cannot be interpreted as an integer"),
        (lambda d: d.hex(str(len(d))), "the mark and the size of groups of digits must be known"),
        (lambda d: int.from_bytes(d, str(len(d))), "the order of bytes, and whether they have a sign, must be known"),
        (lambda d: jnp.asarray(d), "a dtype of texts"),
    ],
)
def test_what_bytes_lack_is_refused(fn: Callable[..., Any], message: str) -> None:
    with pytest.raises(pcbatch.CompileError, match=message):
        pcbatch.batch(fn).trace(pcbatch.ragged(DATA))


def test_bytes_are_results_and_arguments() -> None:
    found = pcbatch.batch(lambda d: d + b"!")(pcbatch.ragged(DATA))
    assert found.kind == "bytes"
    assert found.tolist() == [d + b"!" for d in DATA]
    assert pcbatch.batch(lambda d: d[:1])(found).tolist() == [(d + b"!")[:1] for d in DATA]


def sieve(d):
    n = len(d) * 7 + 2
    prime = bytearray([1]) * (n + 1)
    prime[0:2] = b"\0\0"
    i = 2
    while i * i <= n:
        if prime[i]:
            prime[i * i :: i] = bytes(len(range(i * i, n + 1, i)))
        i += 1
    return [k for k in range(n + 1) if prime[k]], prime.count(1), sum(prime)


def grown(d):
    b = bytearray()
    for x in d:
        b.append(255 - x)
    b += b"ab"
    b.extend(d)
    b[0:1] = [1, 2, 3]
    del b[1]
    return b, bytes(b), len(b), b[-1], b[1:3], b.find(b"b"), b * 2


def refused_numbers(d):
    b, failed = bytearray(len(d) + 1), 0
    for x in d:
        try:
            b[0] = x * 3
        except ValueError:
            failed += 1
        try:
            b.append(x * 3)
        except ValueError:
            failed += 10
        try:
            b.extend([1, x * 3])
        except ValueError:
            failed += 100
        try:
            b[0:1] = [1, x * 3]
        except ValueError:
            failed += 1000
    return b, failed


def compared_arrays(d):
    a, b = bytearray(d), bytearray(b"l") * len(d)
    c = a
    if len(c):
        c[0] ^= 32
    return a == d, a < b, b >= d, d != b, d == bytes(c), 108 in a, b"l" in a, a == [1], isinstance(a, bytearray)


def in_rows(d):
    rows = [bytearray(len(d)) for _ in range(3)]
    for k, row in enumerate(rows):
        for i, x in enumerate(d):
            row[i] = (x + k) % 256
    return [list(row) for row in rows], rows[1] == rows[2]


@pytest.mark.parametrize("fn", [sieve, grown, refused_numbers, compared_arrays, in_rows], ids=lambda fn: fn.__name__)
def test_bytearrays_equal_those_of_python(fn: Callable[..., Any]) -> None:
    assert lanes(pcbatch.batch(fn)(pcbatch.ragged(DATA)), len(DATA)) == [fn(d) for d in DATA]


def test_a_byte_that_does_not_fit_fails_the_lane() -> None:
    def raising(d):
        b = bytearray(3)
        b[len(d) - 2] = len(d) * 100
        return b

    result = pcbatch.batch(raising).run(pcbatch.ragged([b"ab", b"abc", b"abcdef", b""]))
    assert [int(s) == int(pcbatch.Status.OK) for s in result.status] == [True, False, False, True]


def test_a_slice_with_a_step_of_the_lane() -> None:
    def stored(n):
        xs = list(range(6))
        xs[1::n] = [0] * len(xs[1::n])
        xs[::n] = [9]
        return xs

    result = pcbatch.batch(stored).run(jnp.array([6, 2, 1, -1]))
    assert [int(s) == int(pcbatch.Status.OK) for s in result.status] == [True, False, False, False]
    assert result.value.tolist()[0] == stored(6)


def wide_numbers(n):
    d = f"key{n}".encode() + bytes([200, 255, n])
    h = 2166136261
    for byte in d:
        h = ((h ^ byte) * 16777619) & 0xFFFFFFFF
    first, *rest = bytearray(d)
    listed = [x << 31 for x in d], sorted(d)[0] << 30, max(d) << 28, sum(d) * 3000000000, {x: x << 33 for x in d}[107]
    return h, h.to_bytes(4, "little").hex(), d[0] << 24, d[n] * 2**33, first << 30, rest[0] << 26, listed, d[4:].hex()


def test_bytes_are_numbers_of_python_with_64_bit_types() -> None:
    with jax.enable_x64(True):
        assert unlike_plain(wide_numbers, range(4)) == []
        found = pcbatch.batch(lambda n: int.from_bytes(bytes([255, n] * 4), "big")).run(np.arange(2))
        assert [int(s) == int(pcbatch.Status.OK) for s in found.status] == [False, False]
