"""A user's log density as one of a flat vector, checked before anything is compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import short

LogDensity = Callable[..., Any]


@dataclass(frozen=True)
class Target:
    """A log density and the form of its parameters."""

    logp: LogDensity
    structure: jax.tree_util.PyTreeDef
    shapes: tuple[tuple[int, ...], ...]  # of the leaves
    dtype: np.dtype

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

        def flat(q: jax.Array) -> jax.Array:
            return jnp.asarray(self.logp(self.unravel(q), *data), q.dtype)

        return jax.value_and_grad(flat)(q)


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
    return Target(logp, structure, tuple(leaf.shape for leaf in leaves), leaves[0].dtype)


def ravel(parameters: Any, chains: int | None = None) -> np.ndarray:
    """The flat position of a pytree of parameters, [size], or of one with an axis of chains, [chains, size]."""
    front = () if chains is None else (chains,)
    return np.concatenate([np.asarray(leaf).reshape(*front, -1) for leaf in jax.tree.leaves(parameters)], axis=-1)


def leaves_by_name(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a pytree by their paths, such as "slope.mean"; one array alone is called `x`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator=".") or "x": np.asarray(leaf) for path, leaf in leaves}
