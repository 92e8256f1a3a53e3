"""The answers of a call: the value of each example, and the error of each that failed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from pcbatch.data.host.ragged import Ragged
from pcbatch.lowering.typing.trace import is_key_array


@dataclass(frozen=True, slots=True)
class Values:
    """The results of a batch, with the examples along the first axis of each leaf."""

    batch: Any

    def rows(self, count: int, failed: Collection[int]) -> Sequence[Any]:
        """Return the results of the first `count` examples, on the host; None for those that have failed."""
        leaves, tree = jax.tree.flatten(self.batch, is_leaf=lambda value: isinstance(value, Ragged))
        columns = [leaf if isinstance(leaf, Ragged) or is_key_array(leaf) else np.asarray(leaf) for leaf in leaves]
        own = ([column[k] for column in columns] if k not in failed else None for k in range(count))
        return [None if row is None else jax.tree.unflatten(tree, row) for row in own]


Outcome = tuple[Values, Mapping[int, BaseException]]
"""The results of a batch, and the errors of the examples that failed, by their places."""
