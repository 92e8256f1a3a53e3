"""The room with which a run begins, of what some of its examples need in Python."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import fields
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.contexts import plainly, setting
from pcbatch.data.capacity import NO_ROOM, START_CAPACITY, START_CHARACTERS, Room, rounded
from pcbatch.frontend.source.callee import BatchedTest
from pcbatch.sizing.closed import outside
from pcbatch.sizing.examples import chosen, examples
from pcbatch.sizing.watched import Sizes, TimeError, Watch

EXAMPLES, LINES = 32, 24_000  # at most, of one call
FEW, BOUND = 3, 4  # no other one is taken to need more, if some, one out of so many, need as much as the largest
MOST = 2**16  # elements, beyond which room grows as it is needed
LARGE = 2**20  # a number that makes a line take long
SECONDS = 3.0  # of all examples of a call, many times what their lines take
LEAST = {"inner": 4, "inner_characters": 8, "entries": 8, "inner_entries": 4}
MORE = {"characters": 1.5, "records": 1.5, "inner_characters": 1.5}
REST = 1.25  # of what is not in `MORE`: times what the largest of the examples needs, as others may need more


def room_of(fn: FunctionType, batched: BatchedTest, call: Arguments) -> Room:
    """Return the room that examples of a call need, with some to spare; none where that is not known.

    Python runs the function for some examples, if it is closed, so that nothing but its time is to be seen of that.

    Args:
        fn: the function.
        batched: tells batched functions, which run as plain ones.
        call: the call, whose arguments have values.
    """
    if sys.gettrace() is not None or (found := outside(fn, batched)) is None or not found.makes:
        return NO_ROOM
    given = examples(call, chosen(call, EXAMPLES), LARGE if found.is_long else None)
    if not given:
        return NO_ROOM
    try:
        with setting(plainly, True), np.errstate(all="ignore"):
            seen = _seen(fn, found.codes, given)
    except TimeError:
        return NO_ROOM
    finally:
        found.put_back()
    names = [each.name for each in fields(Sizes) if each.name != "rows"]
    needs = {name: _spared([getattr(one, name) for one in seen], MORE.get(name, REST)) for name in names}
    classes = sorted({name for one in seen for name in one.rows})
    made = {name: _spared([one.rows.get(name, 0) for one in seen], MORE["records"]) for name in classes}
    begun = {"elements": 0 if call.alone else START_CAPACITY, "characters": START_CHARACTERS, "records": START_CAPACITY}
    more = {name: need for name, need in needs.items() if need > begun.get(name, 0)}
    parts = {name: max(need, LEAST.get(name, 0)) for name, need in more.items() if need <= MOST}
    return Room(**parts, rows=tuple((name, need) for name, need in made.items() if need <= MOST))


def _seen(fn: FunctionType, codes: set[CodeType], given: Iterable[dict[str, Any]]) -> list[Sizes]:
    """Run examples while there are lines left, half of which one may have."""
    seen, left, until = [], LINES, time.perf_counter() + SECONDS
    for arguments in given:
        watch = Watch(codes, lines := min(left, LINES // 2), until)
        watch.run(fn, arguments)
        seen.append(watch.sizes)
        left -= lines - watch.lines
        if left <= 0:
            break
    return seen


def _spared(sizes: Sequence[int], more: float) -> int:
    """Return the room for the largest of some sizes, and for so many times as much where few need as much."""
    most = max(sizes)
    is_bound = sum(size == most for size in sizes) >= max(FEW, len(sizes) // BOUND)
    return rounded(int(most if is_bound else most * more + 1)) if most else 0
