"""What a block is called in XLA's programs and profiles: `fib/bb3 fib.py:12`.

JAX puts the names of scopes into the metadata of every operation that is traced in them. Files go by their own name,
without folders: equal programs have equal text wherever they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pcbatch.ir.stack import StackBlock

FILES, LINES = 2, 4  # shown of a block that was put together from many places


def scope(block: StackBlock) -> str:
    """Function, label, and where the user wrote what it holds."""
    function = block.function.rpartition("<locals>.")[2]
    return " ".join([f"{function}/{block.label}", *_places(block)])


def _places(block: StackBlock) -> Iterable[str]:
    """`fib.py:3,12`, a text for each file."""
    lines: dict[str, set[int]] = {}
    for place in (*block.ops, block.terminator):
        loc = getattr(place, "loc", None)
        if loc is not None:
            name = re.split(r"[\\/]", loc.file)[-1]
            lines.setdefault(name, set()).add(loc.line)
    for name, found in list(lines.items())[:FILES]:
        yield f"{name}:{','.join(map(str, sorted(found)[:LINES]))}"
