"""The functions of `heapq` and `bisect` that change a list."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Sequence
from typing import Any

MODULES = {"heapq": heapq, "bisect": bisect}


def call(part: Any, name: str, args: Sequence[Any], options: dict[str, Any]) -> tuple[Any, Any]:
    """Call a function, such as `heapq.heappush`, on a list; return the list after it, and the result."""
    module, _, function = name.partition(".")
    return part, getattr(MODULES[module], function)(part, *args, **options)
