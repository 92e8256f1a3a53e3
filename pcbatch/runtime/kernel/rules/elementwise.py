"""Rules of primitives that compute each element by itself, where Triton's operations mean the same as XLA's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from pcbatch.data.rounding import rounded_p
from pcbatch.runtime.kernel.rules.padding import int_info, where
from pcbatch.runtime.kernel.rules.registry import Rule, Unsupported, rule

NATIVE = """abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil cos cosh eq exp exp2 expm1 floor ge gt
integer_pow is_finite le log log1p logistic lt mul ne or rsqrt sin sinh sqrt square sub tan tanh xor""".split()


def is_float(x: Any) -> bool:
    """Return whether an array holds floats."""
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def in_float32(fn: Rule) -> Rule:
    """Compute floats of 16 bits in 32 and round, as XLA does; Triton lacks some functions of them."""

    def computed(eqn: Any, *xs: Array) -> Sequence[Array]:
        short = [x.dtype for x in xs if is_float(x) and x.dtype.itemsize == 2]
        if not short:
            return fn(eqn, *xs)
        wide = [x.astype(jnp.float32) if is_float(x) and x.dtype.itemsize == 2 else x for x in xs]
        outs = fn(eqn, *wide)
        return [out.astype(v.aval.dtype) for out, v in zip(outs, eqn.outvars, strict=True)]

    return computed


@rule(*NATIVE)
@in_float32
def native(eqn: Any, *xs: Array) -> Sequence[Array]:
    """Bind the primitive as it is."""
    return [eqn.primitive.bind(*xs, **eqn.params)]


@rule("pow")
@in_float32
def power(eqn: Any, x: Array, y: Array) -> Sequence[Array]:
    """Raise to a power; one of integers becomes a float, as in JAX's own lowering."""
    return [lax.pow(x, y.astype(x.dtype))]


@rule("nextafter")
def nextafter(eqn: Any, x: Array, y: Array) -> Sequence[Array]:
    """Return the neighbour of a float."""
    if x.dtype.itemsize == 2:
        raise Unsupported(f"neighbours of {x.dtype}")
    return [lax.nextafter(x, y)]


@rule("neg")
def negated(eqn: Any, x: Array) -> Sequence[Array]:
    """Flip the sign bit of floats: Triton subtracts from zero, which makes plus zero of zero."""
    if not is_float(x):
        return [jnp.zeros_like(x) - x]
    word = {2: jnp.int16, 4: jnp.int32, 8: jnp.int64}[x.dtype.itemsize]
    flipped = lax.bitcast_convert_type(x, word) ^ jnp.full_like(x, int_info(word).min, word)
    return [lax.bitcast_convert_type(flipped, x.dtype)]


@rule("not")
def inverted(eqn: Any, x: Array) -> Sequence[Array]:
    """Turn all bits round."""
    if x.dtype == jnp.uint64:  # of which Triton takes no constant of ones
        return [lax.bitwise_not(x.astype(jnp.int64)).astype(jnp.uint64)]
    return [lax.bitwise_not(x)]


@rule("sign")
@in_float32
def sign(eqn: Any, x: Array) -> Sequence[Array]:
    """Return -1, 0 or 1; zeros and NaN stay as they are."""
    zero, one = jnp.zeros_like(x), jnp.ones_like(x)
    below = x if jnp.issubdtype(x.dtype, jnp.unsignedinteger) else where(x < zero, zero - one, x)
    return [where(x > zero, one, below)]


def greater(x: Array, y: Array) -> Array:
    """Return the greater, NaN if either is: Triton's own `max` drops NaN."""
    return _extreme(lax.max, x, y)


def less(x: Array, y: Array) -> Array:
    """Return the less, NaN if either is: Triton's own `min` drops NaN."""
    return _extreme(lax.min, x, y)


def _extreme(fn: Any, x: Array, y: Array) -> Array:
    if x.dtype == jnp.bool_:
        return x | y if fn is lax.max else x & y
    if not is_float(x):
        found: Array = fn(x, y)
        return found
    return where(x != x, x, where(y != y, y, fn(x, y)))


rule("max")(in_float32(lambda eqn, x, y: [greater(x, y)]))
rule("min")(in_float32(lambda eqn, x, y: [less(x, y)]))


@rule("clamp")
@in_float32
def clamp(eqn: Any, low: Array, x: Array, high: Array) -> Sequence[Array]:
    """Limit a value; the limits may be numbers."""
    return [clipped(x, low, high)]


def clipped(x: Array, low: Array, high: Array) -> Array:
    """Limit a value; NaN stays."""
    return less(greater(x, jnp.broadcast_to(low, x.shape)), jnp.broadcast_to(high, x.shape))


@rule("select_n")
def select(eqn: Any, which: Array, *cases: Array) -> Sequence[Array]:
    """Choose among cases by a truth value or a number; keys by the whole key."""
    if which.ndim and cases[0].ndim > which.ndim:
        which = jnp.expand_dims(which, -1)
    if which.dtype == jnp.bool_:
        return [cases[0] if len(cases) == 1 else where(which, cases[1], cases[0])]
    out = cases[0]
    for k, case in enumerate(cases[1:], 1):
        out = where(which == jnp.full_like(which, k), case, out)
    return [out]


@rule(rounded_p.name)
def rounded(eqn: Any, value: Array, of: Array) -> Sequence[Array]:
    """Hide a float from the compiler, which would compute it and what is made of it in one step."""
    return [where(of == of, value, jnp.full_like(value, jnp.nan)) if is_float(of) else value]


# Shifts. XLA defines those by as many bits as there are and more; the hardware's and LLVM's are not.


@rule("shift_left", "shift_right_logical", "shift_right_arithmetic")
def shift(eqn: Any, x: Array, by: Array) -> Sequence[Array]:
    """Shift bits; all of them out if `by` is too great or negative."""
    width, bind = x.dtype.itemsize * 8, partial(eqn.primitive.bind, **eqn.params)
    amount = getattr(eqn.invars[1], "val", None)
    if amount is not None and 0 <= int(amount) < width:
        return [bind(x, by)]
    fits = (by >= jnp.zeros_like(by)) & (by < jnp.full_like(by, width))
    last = jnp.full_like(by, width - 1)
    if eqn.primitive.name == "shift_right_arithmetic":
        return [bind(x, where(fits, by, last))]
    return [where(fits, bind(x, where(fits, by, last)), jnp.zeros_like(x))]


# Numbers of bits. Triton has these of 32 bits; those of 64 come back as 32 there.


@rule("population_count")
def population_count(eqn: Any, x: Array) -> Sequence[Array]:
    """Count the bits that are set."""
    return [_ones(_unsigned(x)).astype(x.dtype)]


@rule("clz")
def leading_zeros(eqn: Any, x: Array) -> Sequence[Array]:
    """Count the zeros before the first bit that is set."""
    bits, width = _unsigned(x), x.dtype.itemsize * 8
    for by in (1, 2, 4, 8, 16, 32):
        if by < width:
            bits |= bits >> jnp.full_like(bits, by)
    return [(jnp.full_like(bits, width) - _ones(bits).astype(bits.dtype)).astype(x.dtype)]


def _unsigned(x: Array) -> Array:
    kind = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint64}[x.dtype.itemsize]
    return x.astype(kind).astype(jnp.uint64 if x.dtype.itemsize == 8 else jnp.uint32)


def _ones(x: Array) -> Array:
    """The count of bits, in parallel for groups of two, four and eight (Warren, "Hacker's Delight", 5-1)."""
    if x.dtype.itemsize == 8:
        high = (x >> jnp.full_like(x, 32)).astype(jnp.uint32)
        return _ones(high) + _ones(x.astype(jnp.uint32))

    def c(n: int) -> Array:
        return jnp.full_like(x, n, jnp.uint32)

    x = x - ((x >> c(1)) & c(0x55555555))
    x = (x & c(0x33333333)) + ((x >> c(2)) & c(0x33333333))
    x = (x + (x >> c(4))) & c(0x0F0F0F0F)
    return (x * c(0x01010101)) >> c(24)


@rule(*"copy copy_p device_put stop_gradient optimization_barrier name sharding_constraint pvary reshard".split())
def passed(eqn: Any, *xs: Array) -> Sequence[Array]:
    """Return the operands."""
    return list(xs)
