"""The displays of the source whose tuples become records of trees, as type inference has found them to meet what has
another structure.

A tuple that meets a text, a number, or a tuple of another length or with other parts is looked for among the tuples
that displays have made, by its length, its literal text at the front and the kinds of its parts. What is found more
than that does no harm: a record of the lane means what the tuple does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

from pcbatch.data.columns import Unset
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.tuples.classes import TupleValue, tuple_class
from pcbatch.data.objects.tuples.displays import Displays, Structure, made_class
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin
from pcbatch.data.rows import Rows
from pcbatch.data.stored import UnlikeError
from pcbatch.data.texts.text import Text
from pcbatch.decisions import NONE, Decisions
from pcbatch.lowering.typing.abstract_values import Known
from pcbatch.lowering.typing.convert_types import Cell, objects_of
from pcbatch.lowering.typing.inferred import Inferred
from pcbatch.lowering.typing.jax_types import from_aval
from pcbatch.lowering.typing.pytree import children_of


def tuples_wanted(inferred: Inferred, displays: Displays | None, decided: Decisions) -> Decisions:
    """Return what lets tuples that meet other structures be records of the lane; nothing where there are none."""
    pairs = [(objects_of(one.first), objects_of(one.second)) for one in inferred.conflicts.values()]
    pairs += [(objects_of(a), objects_of(b)) for each in inferred.unlike.values() for a, b in each]
    errors = (each for error in inferred.errors.values() for each in (error, error.__cause__))
    unlike = [error for error in errors if isinstance(error, UnlikeError)]
    pairs += [tuple(map(_of_values, pair)) for error in unlike for pair in (error.values, error.whole) if pair]
    meeting = [found for one, other in pairs for found in _meeting(one, other) if found]
    # None meets all: a tuple that grows where None was is in others of its kind.
    meeting = meeting or [found for pair in pairs for whole in pair for found in _nested(whole, ())]
    if not meeting or displays is None:
        return NONE
    if not decided.displays:
        return Decisions(displays=True)
    seen = [(place, tag, _of_structure(structure)) for place, tag, structure in displays]
    chosen = set(decided.tuples)
    new = {place for place, _, found in seen if place not in chosen and any(_may_be(found, one) for one in meeting)}
    if not new:
        return NONE
    chosen |= new
    untagged = [found for place, tag, found in seen if tag is None and place in chosen]
    classes = {(len(cls.pcbatch_items), cls.__dict__.get("item_0")): cls for cls in decided.tuples.values()}
    tuples: dict[str, type[TupleValue]] = {}
    for place, tag, found in seen:
        if place in chosen:
            key = (len(found), None if any(_parts_alike(found, one) for one in untagged) else tag)
            if key not in classes:
                classes[key] = tuple_class(*key)
            if tuples.get(place) is None or key[1] is None:
                tuples[place] = classes[key]
    return Decisions(tuples=tuples, made=frozenset(made_class(cls) for cls in tuples.values()))


def _of_values(value: Any) -> Any:
    """The type of a value, put together as an object whose leaves are cells."""
    return jax.tree.map(lambda leaf: _cell(jax.typeof(leaf) if isinstance(leaf, jax.Array) else leaf), value)


def _of_structure(structure: Structure) -> Any:
    tree, leaves = structure
    return jax.tree.unflatten(tree, [_cell(leaf) for leaf in leaves])


def _cell(leaf: Any) -> Cell:
    return Cell(from_aval(leaf) if isinstance(leaf, jax.core.ShapedArray) else Known(leaf), Origin.ARRAY)


def _meeting(x: Any, y: Any) -> Iterator[tuple[Any, ...]]:
    """The tuples of two types at the places where these differ in structure."""
    x, y = (part.value if isinstance(part, Optional) else part for part in (x, y))
    if type(x) is type(y) is tuple and len(x) == len(y):
        for one, other in zip(x, y, strict=True):
            yield from _meeting(one, other)
            kinds = [_kind(part) for part in (one, other)]
            if None not in kinds and kinds[0] != kinds[1] and _tags_differ(x, y):
                yield from (x, y)
    elif isinstance(x, list | Rows) and isinstance(y, list | Rows) and not isinstance(x, Text):
        for one in _elements(x):
            for other in _elements(y):
                yield from _meeting(one, other)
    elif x is None or y is None or isinstance(x, Unset) or isinstance(y, Unset):
        return  # these meet all
    elif type(x) is tuple or type(y) is tuple:
        yield from (part for part in (x, y) if type(part) is tuple)
    elif type(x) is type(y) and not isinstance(x, Cell):
        xs, ys = children_of(x)[0], children_of(y)[0]
        if len(xs) == len(ys):
            for one, two in zip(xs, ys, strict=True):
                yield from _meeting(one, two)


def _tags_differ(x: Any, y: Any) -> bool:
    """Whether two tuples begin with texts that differ, or may do so."""
    both = _kind(x[0]) == _kind(y[0]) == "text"
    return both and (_text(x[0]) is None or _text(x[0]) != _text(y[0]))


def _nested(x: Any, around: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The tuples in a type that hold others of their kind, and those in these."""
    whole = (x,) if type(x) is tuple else ()
    yield from (x for one in whole if any(_parts_alike(one, other) for other in around))
    for part in () if isinstance(x, Cell) else children_of(x)[0]:
        found = list(_nested(part, (*around, *whole)))
        yield from found
        yield from (x for one in whole if any(_parts_alike(one, other) for other in found))


def _elements(x: Any) -> list[Any]:
    return x if isinstance(x, list) else [x.columns]


def _may_be(found: Any, wanted: tuple[Any, ...]) -> bool:
    """Whether a tuple may be one of those that a type stands for."""
    tag = _text(wanted[0])
    return (tag is None or tag == _text(found[0])) and _parts_alike(found, wanted)


def _parts_alike(x: Any, y: Any) -> bool:
    """Whether two tuples are of one length and have parts of the same kinds; what stands first may tell them apart."""
    if len(x) != len(y) or (_kind(x[0]) == "text") is not (_kind(y[0]) == "text"):
        return False
    return all(map(_alike, x, y))


def _text(x: Any) -> str | None:
    """The text that a part of a tuple is known to be."""
    return x.leaf.value if isinstance(x, Cell) and isinstance(x.leaf, Known) and isinstance(x.leaf.value, str) else None


def _alike(x: Any, y: Any) -> bool:
    x, y = (part.value if isinstance(part, Optional) else part for part in (x, y))
    kinds = [_kind(part) for part in (x, y)]
    return kinds[0] == kinds[1] or (None in kinds and tuple not in (type(x), type(y)))


def _kind(x: Any) -> str | None:
    """The kind of a part of a tuple; None for one that may be a part of a tree."""
    x = x.value if isinstance(x, Optional) else x
    if isinstance(x, Text) or _text(x) is not None:
        return "text"
    if x is None or isinstance(x, tuple | Ref | Unset):
        return None
    return "number" if isinstance(x, Cell) else "list" if isinstance(x, list | Rows) else type(x).__name__
