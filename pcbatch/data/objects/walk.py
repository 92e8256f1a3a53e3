"""The walk over objects that refer to one another: each object is found once, whatever refers to it.

Objects are found in the order of their distance from the roots. Many objects of one class are looked at together, field
by field, with the loops inside the interpreter's own functions; a chain of few objects one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from pcbatch.data.objects.schema import ATOMS, NONE, field_names, is_record

TOGETHER = 48  # objects from which on looking at them field by field is faster
AT_ONCE = 4096  # objects that are looked at together, so that they stay in the processor's cache
Getter = Callable[[Any], Any]


class NotPackable(Exception):
    """A value that cannot be packed; `value` is the object itself, `holder` the record that has it in field `name`."""

    def __init__(self, title: str, help: str, holder: Any, name: str) -> None:
        super().__init__(title)
        self.title, self.help, self.holder, self.name = title, help, holder, name


@dataclass(slots=True)
class Values:
    """The values of one field of all records of a class, in pieces.

    A piece is a list of values, or the numbers of the records that they are (see `Found.order`).
    """

    pieces: list[Any] = field(default_factory=list)
    together: list[Any] = field(default_factory=list)  # the last piece, while records are looked at one by one

    def add(self, piece: Any) -> None:
        """Add a whole piece of the structure."""
        self.pieces.append(piece)
        self.together = []

    def appended(self) -> list[Any]:
        """Return the list that single values are appended to."""
        if not self.pieces or self.pieces[-1] is not self.together:
            self.together = []
            self.pieces.append(self.together)
        return self.together


@dataclass(slots=True)
class Found:
    """All records that some roots lead to.

    Attributes:
        order: the records; their places in it number them.
        places: the number of each record by its identity, and -1 for None.
        classes: the classes, in the order in which they were found, with the values of their fields.
        getters: the functions that read the fields of each class.
    """

    order: list[Any] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=lambda: {id(None): NONE})
    classes: dict[type, dict[str, Values]] = field(default_factory=dict)
    getters: dict[type, dict[str, Getter]] = field(default_factory=dict)
    records: set[type] = field(default_factory=set)  # types of records
    skipped: set[type] = field(default_factory=lambda: {*ATOMS, np.ndarray})  # types of values that hold no records


def walk(roots: Sequence[Any]) -> Found:
    """Find all records. Raises NotPackable for a value of an unknown kind."""
    found = Found()
    _add(found, roots, set(map(type, roots)))
    done = 0
    while done < len(found.order):
        end = min(len(found.order), done + AT_ONCE)
        if end - done >= TOGETHER:
            _together(found, found.order[done:end])
            done = end
        else:
            done = _one_by_one(found, done)
    return found


def _getters(found: Found, cls: type, example: Any) -> dict[str, Getter]:
    """The functions that read the fields of a class."""
    if cls not in found.getters:
        names = field_names(cls, example)
        named = issubclass(cls, tuple)
        found.getters[cls] = {n: itemgetter(k) if named else attrgetter(n) for k, n in enumerate(names)}
        found.classes[cls] = {name: Values() for name in names}
    return found.getters[cls]


def _together(found: Found, wave: list[Any]) -> None:
    classes = set(map(type, wave))
    for cls in classes if len(classes) == 1 else dict.fromkeys(map(type, wave)):
        objects = wave if len(classes) == 1 else [o for o in wave if type(o) is cls]
        for name, getter in _getters(found, cls, objects[0]).items():
            try:
                values = list(map(getter, objects))
            except AttributeError:
                raise _missing(objects, name) from None
            kinds = set(map(type, values))
            _add(found, values, kinds)
            kinds.discard(type(None))
            if kinds and kinds.issubset(found.records):
                # The numbers are looked up at once, while they are in the processor's cache.
                numbers = map(found.places.__getitem__, map(id, values))
                found.classes[cls][name].add(np.fromiter(numbers, np.int64, len(values)))
            else:
                found.classes[cls][name].add(values)


def _one_by_one(found: Found, done: int) -> int:
    """Look at records one after the other, at most `TOGETHER` of them; return how many are done."""
    order, places, skipped, records = found.order, found.places, found.skipped, found.records
    appends: dict[type, list[tuple[Getter, Callable[[Any], None], str]]] = {}
    for _ in range(TOGETHER):
        if done == len(order):
            break
        record = order[done]
        done += 1
        cls = type(record)
        if cls not in appends:
            readers, values = _getters(found, cls, record), found.classes[cls]
            appends[cls] = [(getter, values[name].appended().append, name) for name, getter in readers.items()]
        for getter, append, name in appends[cls]:
            try:
                value = getter(record)
            except AttributeError:
                raise _missing([record], name) from None
            append(value)
            kind = type(value)
            if kind in skipped or id(value) in places:
                continue
            if kind in records:
                places[id(value)] = len(order)
                order.append(value)
            else:
                _add(found, (value,), {kind})
    return done


def _add(found: Found, values: Sequence[Any], kinds: set[type]) -> None:
    """Add the records among some values of these types, and in lists and tuples among them."""
    kinds = kinds - found.skipped
    if not kinds:
        return
    found.records |= {kind for kind in kinds - found.records if is_record(kind)}
    records = kinds & found.records
    if records:
        places, unique = found.places, dict(zip(map(id, values), values, strict=True))
        new = {k: v for k, v in unique.items() if k not in places}
        if kinds != records or not set(map(type, new.values())) <= records:
            new = {k: v for k, v in new.items() if type(v) in records}
        places.update(zip(new, count(len(found.order)), strict=False))
        found.order.extend(new.values())
    for kind in kinds - records:
        if kind in (list, tuple):
            items = list(chain.from_iterable(v for v in values if type(v) is kind))
            _add(found, items, set(map(type, items)))
        else:
            found.skipped.add(kind)  # what cannot be packed is refused when columns are made


def _missing(objects: Sequence[Any], name: str) -> NotPackable:
    first = next(o for o in objects if not hasattr(o, name))
    return NotPackable(
        f"this {type(first).__name__} has no attribute `{name}`, which others of its class have",
        f"give every object of the class the same attributes: `{name} = None` where there is none",
        first,
        "",
    )


def path_to(roots: Sequence[Any], holder: Any) -> str:
    """Return the way from the roots to a record, such as `objects[17].left.right`."""
    queue: list[tuple[Any, str]] = [(root, f"objects[{k}]") for k, root in enumerate(roots)]
    seen: set[int] = set()
    for value, path in queue:
        if value is holder:
            return path
        if id(value) in seen:
            continue
        seen.add(id(value))
        if type(value) in (list, tuple):
            queue += [(item, f"{path}[{k}]") for k, item in enumerate(value)]
        elif is_record(type(value)):
            names = field_names(type(value), value)
            queue += [(getattr(value, n), f"{path}.{n}") for n in names if hasattr(value, n)]
    return "objects"
