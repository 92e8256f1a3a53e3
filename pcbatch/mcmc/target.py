"""A user's log density as one of a flat vector, checked before anything is compiled."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from pcbatch.api.batch import batch
from pcbatch.api.batched import Batched, BoundMethod
from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import short

LogDensity = Callable[..., Any]
MOST_FORWARD = 32  # coordinates up to which forward mode, which needs no tape, costs no more than reverse mode


@dataclass(frozen=True)
class Target:
    """A log density and the form of its parameters."""

    logp: LogDensity
    structure: jax.tree_util.PyTreeDef
    shapes: tuple[tuple[int, ...], ...]  # of the leaves
    dtype: np.dtype
    compiled: Callable[..., Any] | None = None  # value and gradient of one that JAX cannot trace, of flat arguments

    @property
    def size(self) -> int:
        """The number of coordinates of a position."""
        return sum(math.prod(shape) for shape in self.shapes)

    def unravel(self, q: Any) -> Any:
        """The pytree of parameters at flat positions `q`, [..., size]: its leaves have the axes in front."""
        leaves, first = [], 0
        for shape in self.shapes:
            last = first + math.prod(shape)
            leaves.append(q[..., first:last].reshape((*q.shape[:-1], *shape)))
            first = last
        return jax.tree.unflatten(self.structure, leaves)

    def logp_and_grad(self, q: jax.Array, *data: Any) -> tuple[jax.Array, jax.Array]:
        """Log density and its gradient at a flat position."""
        if self.compiled is not None:
            value, gradient = self.compiled(q, *jax.tree.leaves(data))
            return value, gradient
        return jax.value_and_grad(self._flat)(q, *data)

    def _flat(self, q: jax.Array, *data: Any) -> jax.Array:
        return jnp.asarray(self.logp(self.unravel(q), *data), q.dtype)

    def forward(self, q: jax.Array, *data: Any) -> tuple[jax.Array, jax.Array]:
        """Log density and its gradient, by one tangent for each coordinate."""

        def along(direction: jax.Array) -> Any:
            return jax.jvp(lambda q: self._flat(q, *data), (q,), (direction,))

        value, gradient = jax.vmap(along, out_axes=(None, 0))(jnp.eye(self.size, dtype=self.dtype))
        return value, gradient


def parameters(start: Any) -> Any:
    """Check a pytree of parameters and convert its leaves to arrays of one floating type.

    Raises:
        UsageError: PCB461.
    """
    leaves, structure = jax.tree.flatten(start)
    if not leaves:
        raise usage("PCB461", "`start` has no parameters", help="give a number, an array, or a pytree of them")
    dtypes = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(start):
        dtype = _dtype(leaf, path)
        if not jnp.issubdtype(dtype, jnp.floating):
            raise usage(
                "PCB461",
                f"the parameter{_place(path)} is of type {np.dtype(dtype).name}, and gradients need floats",
                "NUTS moves along gradients, so all parameters are real numbers",
                help="write 0.0 in place of 0, or sum discrete parameters out",
            )
        dtypes.append(dtype)
    common = jnp.result_type(*dtypes)
    if common not in (jnp.float32, jnp.float64):
        title = f"the parameters are of type {common.name}; float32 and float64 can be sampled"
        raise usage("PCB461", title, help="convert them: `jax.tree.map(lambda x: x.astype(jnp.float32), start)`")
    return jax.tree.unflatten(structure, [np.asarray(leaf).astype(common) for leaf in leaves])


def _dtype(leaf: Any, path: Any) -> Any:
    try:
        return jax.dtypes.canonicalize_dtype(np.asarray(leaf).dtype)
    except TypeError as error:
        title = f"the parameter{_place(path)} is no array: {short(leaf)}"
        raise usage("PCB461", title, help="give numbers and arrays, in a pytree") from error


def _place(path: Any) -> str:
    name = jax.tree_util.keystr(path, simple=True, separator=".")
    return f" `{name}`" if name else ""


def make_target(logp: LogDensity, one: Any, data: tuple[Any, ...]) -> Target:
    """Make the target of a log density.

    Args:
        logp: `logp(parameters, *data)`.
        one: parameters, as `parameters` returns them.
        data: further arguments, which all chains share.

    Raises:
        UsageError: PCB460 if what the log density gives is no scalar.
    """
    if not callable(logp):
        raise usage(
            "PCB460", f"the log density must be a function, not {short(logp)}", help="write `sample(logp, start, ...)`"
        )
    plain, logp = logp, _traceable(logp, one, data)
    result = jax.eval_shape(logp, one, *data)
    leaves = jax.tree.leaves(result)
    if len(leaves) != 1 or not hasattr(result, "shape") or result.shape != ():
        found = f"an array of shape {leaves[0].shape}" if hasattr(result, "shape") else f"a {type(result).__name__}"
        raise usage(
            "PCB460",
            f"the log density must give one number, and gives {found}",
            "it is a function of the parameters of one chain; chains are no axis of what it is given",
            help="sum the terms: `return jnp.sum(...)`",
        )
    if not jnp.issubdtype(result.dtype, jnp.floating):
        raise usage(
            "PCB460", f"the log density must give a float, and gives {result.dtype.name}", help="compute with floats"
        )
    leaves, structure = jax.tree.flatten(one)
    target = Target(logp, structure, tuple(leaf.shape for leaf in leaves), leaves[0].dtype)
    if logp is plain:
        return target
    types, tree = jax.tree.flatten(jax.tree.map(jax.typeof, data))
    return replace(target, compiled=_compiled(target, tuple(types), tree))


def _traceable(logp: LogDensity, one: Any, data: tuple[Any, ...]) -> LogDensity:
    """Return a log density itself if JAX can trace it, otherwise the function of one chain that it is compiled to."""
    if not isinstance(logp, Batched | BoundMethod):
        try:
            jax.eval_shape(logp, one, *data)
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
            pass
        else:
            return logp
    return _of_one_chain(logp, sum(leaf.size for leaf in jax.tree.leaves(one)) <= MOST_FORWARD)


@lru_cache(maxsize=32)
def _of_one_chain(logp: LogDensity, forward: bool) -> LogDensity:
    tape = {"max_tape": 1} if forward else {}  # only reverse mode reads it
    lanes: Any = logp if isinstance(logp, Batched | BoundMethod) else batch(logp)
    names = list(inspect.signature(getattr(lanes, "batched", lanes)).parameters)
    names = names[2 if isinstance(lanes, BoundMethod) else 1 :]  # those of data
    lanes = lanes.with_options(in_axes=dict.fromkeys(names), out_axes=0, **tape)

    def of_one_chain(parameters: Any, *data: Any) -> Any:
        result = lanes(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], parameters), *data)
        return jax.tree.map(lambda leaf: leaf[0], result)

    return of_one_chain


@lru_cache(maxsize=32)
def _compiled(target: Target, types: tuple[Any, ...], tree: jax.tree_util.PyTreeDef) -> Callable[..., Any]:
    """Trace the value and the gradient, for data of these types, before they become a step of the sampler: no function
    is compiled within a step of another."""
    q = np.zeros(target.size, target.dtype)
    both = target.forward if target.size <= MOST_FORWARD else target.logp_and_grad
    run: Callable[..., Any] = jex.jaxpr_as_fun(jax.make_jaxpr(both)(q, *jax.tree.unflatten(tree, types)))
    return run


def ravel(parameters: Any, chains: int | None = None) -> np.ndarray:
    """The flat position of a pytree of parameters, [size], or of one with an axis of chains, [chains, size]."""
    front = () if chains is None else (chains,)
    return np.concatenate([np.asarray(leaf).reshape(*front, -1) for leaf in jax.tree.leaves(parameters)], axis=-1)


def leaves_by_name(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a pytree by their paths, such as "slope.mean"; one array alone is called `x`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator=".") or "x": np.asarray(leaf) for path, leaf in leaves}
