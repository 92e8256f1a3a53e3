"""Evaluation of a jaxpr of true shapes on padded values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
from jax import Array

from pcbatch.lowering.jaxpr_passes.parts import evaluated
from pcbatch.lowering.typing.jax_types import array_struct
from pcbatch.runtime.kernel.rules.padding import filled, padded_shape, struct, traced
from pcbatch.runtime.kernel.rules.registry import RULES, Unsupported, is_key

FLOATS = (jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64)
INTEGERS = (jnp.int8, jnp.int16, jnp.int32, jnp.int64, jnp.uint8, jnp.uint16, jnp.uint32, jnp.uint64)
DTYPES = frozenset(map(jnp.dtype, (jnp.bool_, *INTEGERS, *FLOATS)))
LARGEST = 1 << 20  # elements: Triton's limit for one array

REASONS = {  # of primitives that need no longer sentence in the rules of their family
    "factorises a matrix": "cholesky lu qr geqrf householder_product eigh eig schur svd hessenberg tridiagonal "
    "cholesky_update lu_pivots_to_permutation",
    "solves linear equations": "triangular_solve tridiagonal_solve custom_linear_solve linear_solve",
    "is a Fourier transform": "fft",
    "is a convolution or a sum over windows": "conv_general_dilated reduce_window reduce_window_sum reduce_window_max "
    "reduce_window_min select_and_scatter select_and_scatter_add select_and_gather_add",
    "calls the host": "pure_callback io_callback debug_callback debug_print callback outside_call infeed outfeed",
    "draws with a generator of XLA; keys of threefry2x32 have a rule": "rng_bit_generator rng_uniform",
    "communicates between devices": "psum pmax pmin ppermute all_gather all_to_all axis_index shard_map xla_pmap",
}
WHY = {name: reason for reason, names in REASONS.items() for name in names.split()}


def evaluate(jaxpr: jex.Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Array]:
    """Compute a jaxpr by operations that Pallas Triton lowers.

    Args:
        jaxpr: of true shapes; array constants of jaxprs inside are hoisted (`hoisted`).
        consts: values of its `constvars`, each padded (`padded_shape(logical_shape(aval))`); keys as their words.
        args: values of its `invars`, likewise. What lies beyond the true lengths may be anything.

    Returns:
        The padded results; what lies beyond their true lengths is junk.

    Raises:
        Unsupported: an equation has no form in a kernel.

    Example:
        >>> closed = jax.make_jaxpr(jnp.sum)(jnp.ones(3))
        >>> evaluate(closed.jaxpr, closed.consts, [jnp.array([1.0, 2.0, 3.0, jnp.nan])])
        [Array(6., dtype=float32)]
    """
    outs = evaluated(jaxpr, map(number, consts), args, apply, literal)
    return [traced(x) for x in outs]  # a branch or a loop of Triton yields no number of Python


def apply(eqn: Any, operands: Sequence[Any]) -> Sequence[Array]:
    """Compute one equation."""
    try:
        for v in (*eqn.invars, *eqn.outvars):
            admit(v.aval)
        name = eqn.primitive.name
        if name not in RULES:
            raise Unsupported("it " + WHY[name] if name in WHY else "there is no rule for it")
        outs = RULES[name](eqn, *(operands if name in TAKES_NUMBERS else map(traced, operands)))
    except Unsupported as refused:
        raise refused.of(eqn) from None
    for out, v in zip(outs, eqn.outvars, strict=True):
        expected = struct(v.aval)
        assert (out.shape, out.dtype) == (expected.shape, expected.dtype), (eqn, out)
    return outs


def admit(aval: Any) -> None:
    """Refuse a type that the kernel cannot hold."""
    dtype = getattr(aval, "dtype", None)
    if dtype is None:
        raise Unsupported(f"a value of type {aval}")
    if is_key(aval):
        if (size := jax.eval_shape(jax.random.key_data, array_struct((), dtype)).shape) != (2,):
            raise Unsupported(f"keys of {size[0]} words; keys of threefry2x32 have two")
    elif dtype not in DTYPES:
        raise Unsupported(f"values of dtype {dtype}")
    if (elements := int(np.prod(struct(aval).shape, dtype=np.int64))) > LARGEST:
        raise Unsupported(f"an array of {elements} elements, where a kernel holds {LARGEST} at most")


def literal(v: Any) -> Any:
    """Return the value of a number that stands in a jaxpr."""
    if np.ndim(v.val):
        raise Unsupported("an array stands in the jaxpr: `hoisted` makes an argument of it", "literal")
    if v.aval.dtype == jnp.uint64:
        return filled((), v.val, jnp.uint64)
    return np.asarray(v.val, v.aval.dtype)[()]


# Primitives whose rules, or whose lowering to Triton, take a number of Python as an operand.
TAKES_NUMBERS = frozenset(
    """add add_any and broadcast_in_dim cond convert_element_type eq ge gt jit le lt mul ne or select_n shift_left
    shift_right_arithmetic shift_right_logical sub while xor""".split()
)


def number(x: Any) -> Any:
    """Return a constant; a kernel closes over numbers only, other arrays come as its arguments."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        return x
    first = x.reshape(-1)[:1]
    if x.tobytes() != first.tobytes() * x.size:
        raise Unsupported("an array is a constant of the jaxpr: pass it as an argument of the kernel", "constant")
    return filled(padded_shape(x.shape), first[0] if x.size else 0, x.dtype)
