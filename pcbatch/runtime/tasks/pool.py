"""The pool of frames, and the places of results: frames are taken and given back as slices, by masks.

Number r below the number of examples is no frame but example r, so that all results have places in the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from pcbatch.runtime.vm.block_body import Values

I32 = jnp.int32
FREE, FREE_COUNT = "free", "free:count"
DEST, ROOT, NEED, LAST, AFTER = "frame:dest", "frame:root", "frame:need", "frame:last", "frame:after"


def take(s: Values, k: jax.Array, width: int) -> jax.Array:
    """Take k frames: int32[width], of which the first k are theirs."""
    s[FREE_COUNT] = s[FREE_COUNT] - k
    return lax.dynamic_slice_in_dim(s[FREE], s[FREE_COUNT], width)


def give_back(s: Values, frames: jax.Array, k: jax.Array) -> None:
    """Give the first k of these frames to the pool."""
    s[FREE] = lax.dynamic_update_slice_in_dim(s[FREE], frames, s[FREE_COUNT], 0)
    s[FREE_COUNT] = s[FREE_COUNT] + k


def put(array: Any, at: jax.Array, mask: jax.Array, value: Any) -> Any:
    """Return an array with `value` at the rows `at` of the places in the mask, all different."""
    return array.at[_masked(array, at, mask)].set(value.astype(array.dtype), mode="drop", unique_indices=True)


def put_rows(array: Any, at: jax.Array, slot: int, mask: jax.Array, value: Any) -> Any:
    """Return an array [frames, slots, ...] with the rows of `value`, [width, rows, ...], from a slot on."""
    behind = slot + value.shape[1]
    rows = _masked(array, at, mask)
    return array.at[rows, slot:behind].set(value.astype(array.dtype), mode="drop", unique_indices=True)


def _masked(array: Any, at: jax.Array, mask: jax.Array) -> jax.Array:
    """Return the rows `at` of the places in the mask, and for the others as many different rows behind the array."""
    nowhere = array.shape[0] + jnp.arange(at.shape[0], dtype=I32)
    return jnp.where(mask, at, nowhere)


def put_result(s: Values, key: str, dest: jax.Array, mask: jax.Array, value: Any) -> None:
    """Put results at their places."""
    s[key] = put(s[key], dest, mask, value)


def add_result(s: Values, key: str, dest: jax.Array, mask: jax.Array, value: Any) -> None:
    """Add results to what is at their places."""
    places = s[key]
    zero = jnp.zeros((), places.dtype)
    value = jnp.where(mask.reshape(-1, *(1,) * (value.ndim - 1)), value.astype(places.dtype), zero)
    if places.shape[0] == 1:
        new = places + jnp.sum(value, axis=0, keepdims=True, dtype=places.dtype)
    else:
        new = places.at[jnp.where(mask, dest, places.shape[0])].add(value, mode="drop")
    s[key] = new


def beyond(s: Values, key: str, dest: jax.Array, mask: jax.Array, size: jax.Array) -> tuple[jax.Array, Any]:
    """Find the sums that may have left their dtype, as far as is certain: half of what it holds is too much already.

    Where all that a visit adds comes to no more than that, a sum that wraps around is beyond the half. Else, so may a
    share of it be that is added at once.

    Args:
        s: The state after `add_result` of signed integers.
        key: Their places.
        dest: int32[width]: the place of each record.
        mask: bool[width]: the records that have added something.
        size: float32[width]: the sizes of what each has added.

    Returns:
        bool[]: whether there may be any; a function that gives bool[width], the records that have added to such.
    """
    places: Any = s[key]
    half = int(np.iinfo(places.dtype).max) // 2
    new = places.at[jnp.where(mask, dest, 0)].get(mode="clip")
    wrong = mask & ((new > half) | (new < -half))
    most = half / 2  # with room for what is rounded

    def which() -> jax.Array:
        much = jnp.sum(jnp.where(mask, size, 0.0)) > most
        out: jax.Array = wrong | (much & mask & (size > most / size.shape[0]))
        return out

    return jnp.sum(jnp.where(wrong, jnp.inf, jnp.where(mask, size, 0.0))) > most, which  # one reduction for both


def rows(places: Any, slots: int) -> Any:
    """Return places of results by rows, [examples + frames, slots, ...]."""
    return places.reshape(-1, slots, *places.shape[1:])


def count_down(s: Values, frames: jax.Array, delta: jax.Array, done: jax.Array, lanes: int) -> jax.Array:
    """Let frames wait for more or fewer tasks, and return for which the last one has returned.

    Args:
        s: The state, which is changed.
        frames: int32[width]: the numbers of frames, or of examples, which wait for nothing.
        delta: int32[width]: what each place adds to the number of tasks.
        done: bool[width]: the places whose task has returned.
        lanes: Examples.

    Returns:
        bool[width]: the places whose task was the last one, of each frame one.
    """
    place = jnp.arange(frames.shape[0], dtype=I32)
    nowhere = s[NEED].shape[0]
    s[NEED] = s[NEED].at[jnp.where(delta != 0, frames, nowhere)].add(delta, mode="drop")
    # Two of one visit may both see that nothing is missing any more: the one that is noted goes on. Both arrays are
    # written before they are read, so that XLA need not copy them.
    s[LAST] = s[LAST].at[jnp.where(done, frames, nowhere)].set(place, mode="drop")
    missing = s[NEED].at[frames].get(mode="promise_in_bounds")
    noted = s[LAST].at[frames].get(mode="promise_in_bounds")
    last: jax.Array = done & (frames >= lanes) & (missing == 0) & (noted == place)
    return last


Body = Callable[[Values], Values]


def written(body: Body, s: Values) -> tuple[str, ...]:
    """Return the state keys that a function writes."""
    found: list[str] = []

    def probe(s: Values) -> int:
        out = body(s)
        found.extend(key for key in s if out[key] is not s[key])
        return 0

    jax.eval_shape(probe, s)
    return tuple(found)


def guarded(
    go: jax.Array,
    body: Body,
    s: Values,
    again: Callable[[Values], jax.Array] | None = None,
    keys: Sequence[str] | None = None,
) -> Values:
    """Return the state after a function that runs once if `go`, and then while `again`.

    It is a loop that carries what the function writes (`keys`, None: to be found out): XLA updates that in place, and
    copies nothing of the rest.
    """
    names = written(body, s) if keys is None else keys

    def step(c: tuple[jax.Array, Values]) -> tuple[jax.Array, Values]:
        out = body({**s, **c[1]})
        more = jnp.zeros((), bool) if again is None else again(out)
        return more, {key: out[key] for key in names}

    return {**s, **lax.while_loop(lambda c: c[0], step, (go, {key: s[key] for key in names}))[1]}


Mask = jax.Array | None  # None: all places that have popped a record


@dataclass
class Tally:
    """A number for each place of a visit, the sum of masks."""

    width: int
    every: int = 0  # masks that are all places
    masks: list[jax.Array] = field(default_factory=list)

    def add(self, mask: Mask) -> None:
        if mask is None:
            self.every += 1
        else:
            self.masks.append(mask)

    @property
    def some(self) -> bool:
        """Whether there is any mask."""
        return bool(self.every or self.masks)

    @property
    def always(self) -> bool:
        """Whether the number is above zero at every place."""
        return self.every > 0

    def total(self, ok: jax.Array) -> jax.Array:
        """Return the number at each place, int32[width]."""
        out = jnp.full(self.width, self.every, I32)
        for mask in self.masks:
            out = out + mask.astype(I32)
        return out


def wide(mask: jax.Array, value: Any) -> jax.Array:
    """Return a mask with an axis for each of a value's, to select whole values."""
    return mask.reshape(-1, *(1,) * (value.ndim - 1))


def select(mask: jax.Array, a: Any, b: Any) -> Any:
    """Return `a` at the places in the mask, and `b` at the others."""
    return a if a is b else jnp.where(wide(mask, a), a, b)


def either(a: Mask, b: Mask | bool) -> Mask:
    """Return the places that are in one of two masks."""
    if a is None or b is None:
        return None
    assert not isinstance(b, bool)
    return a | b
