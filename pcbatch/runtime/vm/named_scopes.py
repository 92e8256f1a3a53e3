"""The names of blocks in XLA's programs and profiles: `fib/bb3 fib.py:12`.

JAX puts the names of scopes into the metadata of every operation that is traced in them. Files go by their own name,
without folders: equal programs have equal text wherever they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pcbatch.ir.stack import StackBlock

FILES, LINES = 2, 4  # the most that a name shows, of a block with operations from many lines


def scope(block: StackBlock) -> str:
    """Return the name of a block: function, label, and the lines of its operations in the user's files."""
    function = block.function.rpartition("<locals>.")[2]
    return " ".join([f"{function}/{block.label}", *_places(block)])


def _places(block: StackBlock) -> Iterable[str]:
    """Yield a text such as `fib.py:3,12` for each file."""
    lines: dict[str, set[int]] = {}
    for op in (*block.ops, block.terminator):
        loc = getattr(op, "loc", None)
        if loc is not None:
            name = re.split(r"[\\/]", loc.file)[-1]
            lines.setdefault(name, set()).add(loc.line)
    for name, numbers in list(lines.items())[:FILES]:
        yield f"{name}:{','.join(map(str, sorted(numbers)[:LINES]))}"
