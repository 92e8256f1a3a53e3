"""The truth of a value of a lane."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.container import Collection
from pcbatch.data.functions.python_objects import is_without
from pcbatch.data.functions.users_code import users_method
from pcbatch.data.objects import questions
from pcbatch.data.objects.questions import RECORDS
from pcbatch.data.optional import Optional
from pcbatch.data.values import Value
from pcbatch.errors import TruthOfArray

ARRAYS = (jax.Array, np.ndarray, np.generic)


def truth(value: Value) -> Value:
    """The condition that `value` stands for: a bool, traced or not."""
    if isinstance(value, RECORDS):
        return questions.truth(value)
    if isinstance(value, Optional):
        return jnp.logical_and(value.present, truth(value.value))
    if isinstance(value, Collection):
        return is_without(value, "__len__") or value.length > 0
    if not isinstance(value, ARRAYS):
        method = users_method(value, "__bool__") or users_method(value, "__len__")
        return bool(value) if method is None else truth(method(value))
    if value.shape != ():
        note = "Python, too, finds an array of several elements neither true nor false"
        help = "reduce it with `jnp.all` or `jnp.any`, or choose by element with `jnp.where`"
        raise TruthOfArray(value.shape, note, help=help)
    if value.dtype == np.bool_:
        return value
    return value != 0
