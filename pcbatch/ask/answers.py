"""The answers of a call: the value of each example, and the error of each that failed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from pcbatch.data.host.host_forms import replaced
from pcbatch.data.host.ragged import Ragged, reader_of_lists
from pcbatch.data.optional import Optional, has_lanes
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.lowering.typing.trace import is_key_array


@dataclass(frozen=True, slots=True)
class Values:
    """The results of a batch, with the examples along the first axis of each leaf."""

    batch: Any

    def rows(self, count: int, failed: Collection[int]) -> Sequence[Any]:
        """Return the results of the first `count` examples, on the host; None for those that have failed."""
        read = reader(self.batch)
        return [None if k in failed else read(k) for k in range(count)]


def reader(batch: Any) -> Callable[[int], Any]:
    """Return what reads the result of one example: that of the plain function, with arrays of NumPy, also for lists."""
    match batch:
        case Optional():
            present, read = np.asarray(batch.present), reader(batch.value)
            return lambda k: read(k) if present[k] else None
        case Ragged():
            return reader_of_lists(batch)
        case jax.Array() | np.ndarray():
            if is_key_array(batch):
                return batch.__getitem__
            rows = np.asarray(batch)
            return lambda k: rows[k].copy()  # a view would keep the whole batch
        case _ if has_lanes(batch):  # members of enumerations, and objects that lanes have made
            return lambda k: batch[k]
    parts, tree = flatten(replaced(batch, has_lanes, Part))
    readers = [reader(part.value if isinstance(part, Part) else part) for part in parts]  # a key is a leaf anyway
    return lambda k: tree.unflatten([read(k) for read in readers])


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a value, a leaf for JAX whatever it is."""

    value: Any


Outcome = tuple[Values, Mapping[int, BaseException]]
"""The results of a batch, and the errors of the examples that failed, by their places."""
