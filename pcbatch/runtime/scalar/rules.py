"""Operations of JAX as loops for one lane, where XLA:CPU has no native form of them, or one that copies.

before:  c:f32[9] = sort[dimension=0 num_keys=1] b
after:   c:f32[9] = jit[jaxpr={ ... a merge sort by loops ... }] b

A sort, a general scatter, a product of two matrices and a large reduction are kernels or calls of a library on a CPU,
which no native function holds. A load of few elements becomes a loop of one iteration (`run_once.isolated`): XLA copies
an array that is stored into behind the load otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
from jax.extend.core.primitives import convert_element_type_p

from pcbatch.data.by_width import by_width_p
from pcbatch.data.sequences.merge_sort import comparable, is_less, merge_order
from pcbatch.jax_settings import settings
from pcbatch.lowering.jaxpr_passes.rewrite_jaxprs import Rewrite, as_call
from pcbatch.runtime.scalar import reductions
from pcbatch.runtime.scalar.native import FORM, LOAD, own_call
from pcbatch.runtime.scalar.reductions import LARGE, is_large, reduced
from pcbatch.runtime.scalar.stores import COMBINE, scatter, sliced
from pcbatch.runtime.vm.block_body import BlockCode
from pcbatch.runtime.vm.layout import Layout
from pcbatch.runtime.vm.run_once import isolated

# Sorts as loops for one lane: those of XLA:CPU are calls of a library, which no native function holds.


def sort(*operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[jax.Array]:
    """Sort along an axis by the first operands, as `jax.lax.sort` does; always stable."""
    if operands[0].size == 0:
        return list(operands)
    rows = [jnp.moveaxis(x, dimension, -1) for x in operands]
    shape, size = rows[0].shape, rows[0].shape[-1]
    flat = [x.reshape(-1, size) for x in rows]
    out = _by_rows(lambda row: _sorted_row(row, num_keys), flat)
    return [jnp.moveaxis(x.reshape(shape), -1, dimension) for x in out]


def _by_rows(function: Callable[[list[Any]], list[Any]], arrays: Sequence[Any]) -> list[Any]:
    """Return arrays [rows, ...] of what a function gives of the rows of arrays [rows, ...]."""
    if arrays[0].shape[0] == 1:
        return [x[None] for x in function([x[0] for x in arrays])]
    return list(jax.lax.map(lambda row: tuple(function(list(row))), tuple(arrays)))


def _sorted_row(row: Sequence[Any], num_keys: int) -> list[Any]:
    order = merge_order([comparable(x) for x in row[:num_keys]], is_less)
    return [x[order] for x in row]


def top_k(operand: Any, *, k: int, axis: int = -1, **_: Any) -> list[jax.Array]:
    """Return the k largest elements along an axis and their indices, as `jax.lax.top_k` does."""
    rows = jnp.moveaxis(operand, axis, -1)
    shape = (*rows.shape[:-1], k)

    def of_row(row: list[Any]) -> list[Any]:
        order = merge_order([_in_total_order(row[0])], lambda a, b: b < a)[:k]
        return [row[0][order], order]

    values, indices = _by_rows(of_row, [rows.reshape(-1, rows.shape[-1])])
    return [jnp.moveaxis(x.reshape(shape), -1, axis) for x in (values, indices)]


def _in_total_order(key: Any) -> Any:
    """Return numbers whose order is the total order of a key's: -0.0 comes before 0.0, and NaN last."""
    if not jnp.issubdtype(key.dtype, jnp.floating):
        return comparable(key)
    wide = key if key.dtype.itemsize >= 4 else key.astype(jnp.float32)
    integer = np.dtype(f"int{8 * wide.dtype.itemsize}")
    bits = jax.lax.bitcast_convert_type(wide, integer)
    return jnp.where(bits < 0, bits ^ np.asarray(np.iinfo(integer).max, integer), bits)


ISOLATED = 64  # the most elements of a load that is isolated: a larger one is a loop of its own anyway,
PART = 8  # unless it is this small a part of its array, which XLA may copy for it
SMALL = 16  # elements of an array, up to which a load is cheap even if it copies

LOADS = ("gather", "dynamic_slice")


class ForOneLane(Rewrite):
    """Replaces operations by the functions of `RULES`, and chooses the forms for a lane alone (`by_width`).

    In those forms stores come before loads, so loads are not isolated there.
    """

    def program(self, layout: Layout) -> Layout:
        """Rewrite the bodies of all blocks."""

        def block(code: BlockCode) -> BlockCode:
            return replace(code, block=replace(code.block, ops=tuple(map(self.op, code.block.ops))))

        return replace(layout, codes=tuple(map(block, layout.codes)))

    def __init__(self, isolates: bool = True) -> None:
        super().__init__()
        self._isolates = isolates
        self._of_forms = ForOneLane(False) if isolates else self

    def equation(self, eqn: Any) -> Any:
        if eqn.primitive is by_width_p:
            return self._of_forms.any_equation(as_call(_alone, eqn))
        rule = RULES.get(eqn.primitive.name)
        if rule is None or not rule[0](eqn) or (not self._isolates and eqn.primitive.name in LOADS):
            return eqn
        try:
            call = _kept_call(_Alike(eqn))
        except TypeError:  # a parameter that has no hash
            call = _call(eqn)
        return eqn if call is None else eqn.replace(primitive=call.primitive, params=call.params)


def _alone(*args: Any, together: jex.ClosedJaxpr, alone: jex.ClosedJaxpr) -> Any:
    """Compute the form for a lane alone."""
    form = jex.jaxpr_as_fun(alone)

    def function(*args: Any) -> Any:
        return form(*args) if alone is not together else isolated(lambda: form(*args))

    function.__name__ = FORM
    return jax.jit(function)(*args)


class _Alike:
    """An equation that equals all others of one operation on operands of the same types under the same settings of JAX:
    one call for all of them is traced, and lowered, once."""

    def __init__(self, eqn: Any) -> None:
        self.eqn = eqn
        types = tuple(v.aval for v in (*eqn.invars, *eqn.outvars))
        params = tuple(sorted(eqn.params.items(), key=lambda item: item[0]))
        self._key = eqn.primitive, types, params, settings()

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alike) and self._key == other._key


@lru_cache(maxsize=4096)
def _kept_call(one: _Alike) -> Any | None:
    return _call(one.eqn)


def _call(eqn: Any) -> Any | None:
    """Return an equation that calls the function of the rule for an equation, with its results' weak types."""
    rule = RULES[eqn.primitive.name][1]

    def function(*args: Any, **params: Any) -> Any:
        outs = rule(*args, **params)
        leaves = outs if eqn.primitive.multiple_results else [outs]
        cast = [
            convert_element_type_p.bind(leaf, new_dtype=v.aval.dtype, weak_type=v.aval.weak_type, sharding=None)
            for leaf, v in zip(leaves, eqn.outvars, strict=True)
        ]
        return cast if eqn.primitive.multiple_results else cast[0]

    if eqn.primitive.name in LOADS:
        function.__name__ = LOAD
    return as_call(lambda *args, **params: jax.jit(partial(function, **params))(*args), eqn)


# Loads and stores


def _is_key(eqn: Any) -> bool:
    return bool(jnp.issubdtype(eqn.invars[0].aval.dtype, jax.dtypes.prng_key))


def _loads_little(eqn: Any) -> bool:
    size, loaded = int(eqn.invars[0].aval.size), int(eqn.outvars[0].aval.size)
    return size > SMALL and loaded <= max(ISOLATED, size // PART) and not _is_key(eqn)


def gather(operand: Any, indices: Any, **params: Any) -> jax.Array:
    """Gather few elements in a function of its own."""
    numbers, sizes = params.pop("dimension_numbers"), params.pop("slice_sizes")
    if all(operand.shape[d] == sizes[d] for d in numbers.start_index_map):
        return isolated(lambda: jax.lax.gather(operand, indices, numbers, sizes, **params))
    out: jax.Array = own_call(lambda array, at: jax.lax.gather(array, at, numbers, sizes, **params), operand, indices)
    return out


def dynamic_slice(operand: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> jax.Array:
    """Slice few elements in a function of its own."""
    return sliced(operand, starts, slice_sizes)


# Products


def _multiplies_matrices(eqn: Any) -> bool:
    (contracted, right_contracted), (batched, right_batched) = eqn.params["dimension_numbers"]
    left, right = (v.aval for v in eqn.invars)

    def free(aval: Any, used: set[int]) -> int:
        return math.prod(n for d, n in enumerate(aval.shape) if d not in used)

    rows = free(left, {*contracted, *batched})
    columns = free(right, {*right_contracted, *right_batched})
    batches = math.prod(left.shape[d] for d in batched)
    return (rows > 1 and columns > 1) or batches > 1 or (rows == columns == 1 and is_large(eqn))


def dot_general(left: Any, right: Any, **params: Any) -> jax.Array:
    """Multiply matrices, row by row; XLA makes a reduction of a product of two vectors."""
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    lf = [d for d in range(left.ndim) if d not in (*lc, *lb)]
    rf = [d for d in range(right.ndim) if d not in (*rc, *rb)]
    batches = [left.shape[d] for d in lb]
    rows, columns = [left.shape[d] for d in lf], [right.shape[d] for d in rf]
    inner = math.prod(left.shape[d] for d in lc)
    a = jnp.transpose(left, (*lb, *lf, *lc)).reshape(math.prod(batches), math.prod(rows), inner)
    b = jnp.transpose(right, (*rb, *rc, *rf)).reshape(math.prod(batches), inner, math.prod(columns))
    type_, numbers = params["preferred_element_type"], (((0,), (0,)), ((), ()))
    if inner == 1:  # each element is one product: XLA merges it with what is done to the elements
        each = a.astype(type_ or a.dtype) * jnp.swapaxes(b, 1, 2).reshape(*b.shape[:1], 1, -1).astype(type_ or b.dtype)
        return each.reshape(*batches, *rows, *columns)
    precision = params["precision"]

    def product(row: Any, matrix: Any) -> jax.Array:
        if matrix.shape[1] == 1 and inner >= LARGE:
            each = row.astype(type_ or row.dtype) * matrix[:, 0].astype(type_ or row.dtype)
            return reduced("reduce_sum", each, axes=(0,))[None]
        return jax.lax.dot_general(row, matrix, numbers, precision=precision, preferred_element_type=type_)

    def of_batch(pair: tuple[Any, Any]) -> jax.Array:
        rows: jax.Array = jax.lax.map(lambda row: product(row, pair[1]), pair[0])
        return rows

    out: jax.Array = jax.lax.map(of_batch, (a, b)) if len(a) > 1 else of_batch((a[0], b[0]))
    return out.reshape(*batches, *rows, *columns)


_Rule = tuple[Callable[[Any], bool], Callable[..., Any]]
# The replacement of an equation, by the name of its primitive, and whether an equation is replaced.
RULES: dict[str, _Rule] = {
    "sort": (lambda eqn: True, sort),
    "top_k": (lambda eqn: True, top_k),
    "gather": (_loads_little, gather),
    "dynamic_slice": (_loads_little, dynamic_slice),
    "dot_general": (_multiplies_matrices, dot_general),
    **{name: (lambda eqn: not _is_key(eqn), partial(scatter, name)) for name in COMBINE},
    **{name: (is_large, partial(reduced, name)) for name in reductions.COMBINE},
}


def is_left(eqn: Any) -> bool:
    """Whether an equation of a rewritten program is one that no native function holds, since no rule was for it."""
    name = eqn.primitive.name
    if name == "reduce" or name.startswith("reduce_window"):
        return is_large(eqn)
    return name in COMBINE or (name in RULES and name not in LOADS and RULES[name][0](eqn))
