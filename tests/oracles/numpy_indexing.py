"""Gather and scatter on NumPy arrays, after the definitions of XLA's operations of these names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode

Windows = Callable[..., Any]


def gather(params: Mapping[str, Any], eqn: Any) -> Callable[[Any, Any], Any]:
    """A function of an operand and start indices."""
    numbers, sizes, mode = params["dimension_numbers"], params["slice_sizes"], params["mode"]
    shape, dtype = eqn.outvars[0].aval.shape, eqn.outvars[0].aval.dtype
    offsets = numbers.offset_dims
    batch = [d for d in range(len(shape)) if d not in offsets]
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = tuple(n for d, n in enumerate(sizes) if d not in dropped)
    fill = _fill(params["fill_value"], dtype)

    def run(x: Any, indices: Any) -> Any:
        out = np.empty(shape, dtype)
        for where, starts in _starts(
            indices, np.ndim(x), numbers.start_index_map,
            numbers.operand_batching_dims, numbers.start_indices_batching_dims,
        ):  # fmt: skip
            begin = _placed(starts, np.shape(x), sizes, mode)
            target: list[Any] = [slice(None)] * len(shape)
            for d, k in zip(batch, where, strict=True):
                target[d] = k
            part = fill if begin is None else x[tuple(slice(b, b + n) for b, n in zip(begin, sizes, strict=True))]
            out[tuple(target)] = part if begin is None else part.reshape(window)
        return out if shape else out[()]

    return run


def scatter(combine: Callable[[Any, Any], Any]) -> Callable[[Mapping[str, Any], Any], Windows]:
    """A function of an operand, indices and updates, which meet what was there by `combine`."""

    def make(params: Mapping[str, Any], eqn: Any) -> Windows:
        numbers, mode = params["dimension_numbers"], params["mode"]
        shape, updates = eqn.invars[0].aval.shape, eqn.invars[2].aval.shape
        inserted = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        window = iter([updates[d] for d in numbers.update_window_dims])
        sizes = [1 if d in inserted else next(window) for d in range(len(shape))]
        batch = [d for d in range(len(updates)) if d not in numbers.update_window_dims]

        def run(x: Any, indices: Any, new: Any) -> Any:
            x, new = np.array(x), np.asarray(new)
            for where, starts in _starts(
                indices, x.ndim, numbers.scatter_dims_to_operand_dims,
                numbers.operand_batching_dims, numbers.scatter_indices_batching_dims,
            ):  # fmt: skip
                begin = _placed(starts, x.shape, sizes, mode)
                if begin is not None:
                    source: list[Any] = [slice(None)] * new.ndim
                    for d, k in zip(batch, where, strict=True):
                        source[d] = k
                    place = tuple(slice(b, b + n) for b, n in zip(begin, sizes, strict=True))
                    x[place] = combine(x[place], new[tuple(source)].reshape(sizes))
            return x if shape else x[()]

        return run

    return make


def _fill(value: Any, dtype: Any) -> Any:
    if value is not None:
        return value
    if np.issubdtype(dtype, np.inexact):
        return np.nan
    if dtype == np.bool_:
        return True
    return np.iinfo(dtype).min if np.issubdtype(dtype, np.signedinteger) else np.iinfo(dtype).max


def _starts(
    indices: Any, rank: int, dims: Sequence[int], batched: Sequence[int], index_batched: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Places among the indices, each with the first element of its window along every dimension of the operand."""
    indices = np.asarray(indices)
    for where in np.ndindex(*indices.shape[:-1]):
        starts = [0] * rank
        for d, k in zip(dims, indices[where], strict=True):
            starts[d] = int(k)
        for d, b in zip(batched, index_batched, strict=True):
            starts[d] = where[b]
        yield where, starts


def _placed(starts: list[int], shape: Sequence[int], sizes: Sequence[int], mode: Any) -> list[int] | None:
    """The same starts, moved inside or refused where the mode says so."""
    last = [n - size for n, size in zip(shape, sizes, strict=True)]
    if all(0 <= s <= n for s, n in zip(starts, last, strict=True)):
        return starts
    if mode == GatherScatterMode.FILL_OR_DROP:
        return None
    return [min(max(s, 0), n) for s, n in zip(starts, last, strict=True)]
