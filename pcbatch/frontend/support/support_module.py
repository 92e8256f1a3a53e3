"""The support module: the functions that compiled primitives call where Python's own operators refuse traced values.

Every function here means the same as the Python construct it stands for when its arguments are plain values.
Most are defined in `data/functions/`. Primitives reach this module through a closure cell, so no user name can hide it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pcbatch.data.functions import (
    builtins,
    defaults,
    dict_loops,
    drafts,
    exceptions,
    iteration,
    libraries,
    mappings,
    operators,
    python_numbers,
    sequence_operators,
    sequences,
    texts,
    traced_effects,
    truth,
    type_questions,
    users_code,
)
from pcbatch.data.functions.operators import mul as mul
from pcbatch.data.functions.python_numbers import iadd as iadd
from pcbatch.data.optional import narrowed as narrowed
from pcbatch.data.optional import unwrapped as unwrapped
from pcbatch.data.origins import array as array
from pcbatch.data.origins import note_outside
from pcbatch.data.origins import number as number
from pcbatch.data.sequences.lane_tuple import transposed as transposed
from pcbatch.frontend.support import links, mutation


def _public(*modules: ModuleType) -> dict[str, Any]:
    """The public functions and constants that these modules define, by name."""
    parts = [
        (name, part)
        for module in modules
        for name, part in vars(module).items()
        if name[0] != "_" and getattr(part, "__module__", None) == module.__name__
    ]
    assert len(dict(parts)) == len(parts), "two modules define functions of one name"
    return dict(parts)


outside = note_outside
MODULES = (
    builtins, defaults, dict_loops, drafts, exceptions, iteration, libraries, links, mappings, mutation,
    python_numbers, sequence_operators, sequences, texts, traced_effects, truth, type_questions, users_code,
)  # fmt: skip
globals().update({**_public(*MODULES), **_public(operators)})
