"""A kernel of one function: rules run in interpret mode, and are lowered for a GPU that need not be there.

Interpret mode runs what Triton refuses, so no rule is tested by it alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

from pcbatch.runtime.kernel.rules import evaluate, hoisted, logical_shape, padded_shape


def is_key(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jax.dtypes.prng_key))


def junk(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The array in a larger room, filled with what no result may show."""
    worst: Any = {"f": np.nan, "i": 77, "u": 78, "b": True}.get(x.dtype.kind, np.nan)
    room = np.full(shape, worst, x.dtype)
    if x.dtype.kind not in "iub":
        room.reshape(-1)[::2] = np.inf
    room[tuple(slice(n) for n in x.shape)] = x
    return room


def stored(dtype: Any) -> Any:
    """Truth values are stored as numbers."""
    return jnp.int32 if dtype == jnp.bool_ else dtype


def kernel_of(fn: Callable[..., Any], *args: Any, interpret: bool) -> tuple[Callable[..., Any], list[Any], list[Any]]:
    """A function of padded arrays that runs the kernel, these arrays, and the types of the results."""
    closed = jax.make_jaxpr(fn)(*args)
    jaxpr, consts = hoisted(closed)
    places = [k for k, c in enumerate(consts) if np.ndim(c)]
    flat = [*(consts[k] for k in places), *jax.tree.leaves(args)]
    values = [np.asarray(jax.random.key_data(x) if is_key(x) else x) for x in flat]
    inputs = [junk(x, padded_shape(x.shape)) for x in values]
    dtypes = [x.dtype for x in inputs]
    scalars = [not x.ndim for x in inputs]
    inputs = [jnp.asarray(np.atleast_1d(x)).astype(stored(x.dtype)) for x in inputs]
    results = [v.aval for v in jaxpr.outvars]
    kinds = [jnp.uint32 if is_key(a) else a.dtype for a in results]
    rooms = [padded_shape(logical_shape(a)) for a in results]
    outs = [jax.ShapeDtypeStruct(shape or (1,), stored(d)) for shape, d in zip(rooms, kinds, strict=True)]

    def kernel(*refs: Any) -> None:
        read = []
        for ref, scalar, dtype in zip(refs[: len(inputs)], scalars, dtypes, strict=True):
            x = ref[0] if scalar else ref[...]
            read.append(x.astype(dtype))
        given = list(consts)
        for k, x in zip(places, read, strict=False):
            given[k] = x
        found = evaluate(jaxpr, given, read[len(places) :])
        for ref, x, room in zip(refs[len(inputs) :], found, rooms, strict=True):
            if room:
                ref[...] = x.astype(ref.dtype)
            else:
                ref[0] = x.astype(ref.dtype)

    how: Any = {} if interpret else {"compiler_params": plt.CompilerParams(num_warps=4, num_stages=1)}
    call = pl.pallas_call(kernel, out_shape=outs, interpret=interpret, **how)
    return call, inputs, results


def run(fn: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    """The results of the kernel in interpret mode, without their padding."""
    call, inputs, results = kernel_of(fn, *args, interpret=True)
    found = jax.jit(call)(*inputs)
    cut = []
    for x, aval in zip(found, results, strict=True):
        shape = logical_shape(aval)
        x = np.asarray(x)[tuple(slice(n) for n in shape)] if shape else np.asarray(x)[0]
        cut.append(np.asarray(x).astype(np.uint32 if is_key(aval) else aval.dtype))
    return cut


def imagined(platform: str) -> Any:
    """From jax 0.11 on, Triton wants to know the device while it lowers; before, there was no way to say."""
    device = getattr(jax.sharding, "AbstractDevice", None)
    if device is None or platform not in ("cuda", "rocm") or jax.__version_info__ < (0, 11):
        return contextlib.nullcontext()
    kind = device(device_kind="NVIDIA H100 80GB HBM3", num_cores=None, platform="cuda")
    return jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=kind))


def lower(fn: Callable[..., Any], *args: Any, platform: str = "cuda") -> str:
    """The text of the kernel for a GPU."""
    call, inputs, _ = kernel_of(fn, *args, interpret=False)
    with imagined(platform):
        return jax.jit(call).trace(*inputs).lower(lowering_platforms=(platform,)).as_text()


def lowered(f: Callable[..., Any], *args: Any, platform: str = "cuda") -> str:
    """The text of a program for a GPU."""
    with imagined(platform):
        text: str = jax.jit(f).trace(*args).lower(lowering_platforms=(platform,)).as_text()
    return text


def expected(fn: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    """The results of plain JAX."""
    leaves = jax.tree.leaves(jax.jit(fn)(*args))
    return [np.asarray(jax.random.key_data(x) if is_key(x) else x) for x in leaves]


def bits(x: np.ndarray) -> np.ndarray:
    return x if x.dtype.kind in "iub" else x.view(f"u{x.dtype.itemsize}")


def same(fn: Callable[..., Any], *args: Any, tolerance: float | None = None) -> None:
    """The kernel agrees with plain JAX, to the bit unless there is a tolerance, and lowers to Triton."""
    for found, wanted in zip(run(fn, *args), expected(fn, *args), strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        if tolerance is None or wanted.dtype.kind in "iub":
            np.testing.assert_array_equal(bits(found), bits(wanted))
        else:
            np.testing.assert_allclose(
                found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance
            )
    assert "triton" in lower(fn, *args)
