"""The ambient mesh of a call, that of a `jax.shard_map` or `jax.set_mesh` around it, is kept out of the machine.

Inside a `shard_map` JAX tracks over which axes of the mesh a value varies, and on a mesh with explicit axes the type of
an array says how it is sharded. The machine is made of loops whose carried state starts as constants, and of jaxprs
that were traced for one lane outside the mesh, so it would have to cast in hundreds of lines. It needs none of that: it
runs on one device, on the part of the arrays that this device has. So it is traced as if there were no mesh, and only
its arguments and results have the types that JAX expects under the mesh (`trace_without_mesh`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.extend.core as jex
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh


def without_mesh() -> AbstractContextManager[Any]:
    """Return a context in which JAX traces as if there were no ambient mesh.

    The kind of device stays, which a mesh says as well: that of a GPU for which kernels are lowered elsewhere.
    """
    mesh: Any = AbstractMesh  # untyped in some releases of JAX
    device = getattr(ambient_mesh(), "abstract_device", None)
    empty = mesh((), ()) if device is None else mesh((), (), abstract_device=device)
    context: AbstractContextManager[Any] = jax.sharding.use_abstract_mesh(empty)
    return context


def run_without_mesh() -> AbstractContextManager[Any]:
    """Return a context in which programs run as if there were no ambient mesh; for use outside traces."""
    if ambient_mesh().empty:
        return nullcontext()
    set_mesh: Any = jax.set_mesh  # untyped in some releases of JAX
    context: AbstractContextManager[Any] = set_mesh(Mesh(np.empty((), dtype=object), ()))
    return context


def ambient_mesh() -> AbstractMesh:
    """Return the mesh that JAX is tracing in; an empty one if there is none."""
    get_mesh: Any = jax.sharding.get_abstract_mesh  # untyped in some releases of JAX
    mesh: AbstractMesh = get_mesh()
    return mesh


def manual_axes(mesh: Any) -> frozenset[str]:
    """Return the names of a mesh's axes that a surrounding `shard_map` is manual over."""
    if mesh.empty:
        return frozenset()
    types = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return frozenset(name for name, type_ in types if type_ == AxisType.Manual)


def is_explicit(mesh: Any) -> bool:
    """Whether shardings over some axes of a mesh are part of the types of arrays."""
    return any(type_ == AxisType.Explicit for type_ in mesh.axis_types)


def varying(args: Any) -> frozenset[str]:
    """Return the names of the axes that some array of a pytree varies over, as far as JAX tracks it."""
    types: Any = [jax.typeof(leaf) for leaf in jax.tree.leaves(args)]
    return frozenset[str]().union(*(t.manual_axis_type.varying for t in types))


def varied(arrays: Sequence[Any]) -> list[Any]:
    """Return arrays cast so that each varies over all axes that one of them varies over."""
    axes = varying(list(arrays))
    if not axes:
        return list(arrays)
    missing = [tuple(sorted(axes - varying([x]))) for x in arrays]
    return [jax.lax.pcast(x, more, to="varying") if more else x for x, more in zip(arrays, missing, strict=True)]


def trace_without_mesh(fn: Callable[..., Any], *args: Any) -> Any:
    """Return `fn(*args)`, traced as if there were no ambient mesh.

    `args` are pytrees of arrays, and so is the result, whose arrays vary over all axes that one of the arguments varies
    over.
    """
    flat, tree = jax.tree.flatten(args)
    types: list[Any] = [jax.typeof(leaf) for leaf in flat]
    if ambient_mesh().empty and all(t.sharding.mesh.empty for t in types):
        return fn(*args)

    def bare(*flat: Any) -> Any:
        with without_mesh():
            return fn(*jax.tree.unflatten(tree, flat))

    make: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX
    shapes = [make(t.shape, t.dtype, weak_type=t.weak_type) for t in types]
    # JAX sees one equation of it under the mesh, a jitted function.
    closed, like = jax.make_jaxpr(jax.jit(bare), return_shape=True)(*shapes)
    out = _cast(jex.jaxpr_as_fun(closed)(*flat), varying(args))
    return jax.tree.unflatten(jax.tree.structure(like), out)


def _cast(arrays: Sequence[Any], axes: frozenset[str]) -> list[Any]:
    return [jax.lax.pcast(x, tuple(sorted(axes)), to="varying") for x in arrays] if axes else list(arrays)
