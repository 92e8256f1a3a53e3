"""`pack`: objects that refer to one another become tables of arrays, one for each class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import rounded
from pcbatch.data.object_parts import is_plain_object
from pcbatch.data.objects.columns import Array, Fault, Numbering, table_columns
from pcbatch.data.objects.packed import Packed, marks
from pcbatch.data.objects.ref_type import RefType
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.schema import Pointer, Record, Schema, is_record
from pcbatch.data.objects.tables import KnownTable
from pcbatch.data.objects.walk import Found, NotPackable, path_to, walk
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import UsageError


def pack(objects: Iterable[Any], *, rows: Mapping[type, int] | None = None) -> Packed:
    """Pack objects that refer to one another, so that lanes of a batched function can walk over them.

    Records are objects of named tuples, dataclasses and plain classes. Their fields hold numbers, arrays of one shape,
    members of an enumeration, other records or None, and lists and tuples of these. An object that several others
    refer to is stored once; cycles are kept.

    Args:
        objects: the roots, one for each example; None stands for no object.
        rows: the number of rows of a class's table; without it, the least power of two that is enough. A program is
            compiled for these numbers.

    Returns:
        A `Packed`, with the objects in their order.

    Raises:
        UsageError: something cannot be packed; the message names the way to it, `objects[17].left.word`.

    Example:
        >>> from typing import NamedTuple
        >>> import pcbatch
        >>> class Node(NamedTuple):
        ...     left: "Node | None"
        ...     right: "Node | None"
        ...     word: int
        >>> leaf = Node(None, None, 3)
        >>> trees = pcbatch.pack([Node(leaf, leaf, 0), leaf])
        >>> @pcbatch.batch
        ... def total(tree):
        ...     if tree is None:
        ...         return 0
        ...     return tree.word + total(tree.left) + total(tree.right)
        >>> total(trees).tolist()
        [6, 3]
    """
    roots = list(objects)
    try:
        found = walk(roots)
        return _packed(roots, found, dict(rows or {}))
    except NotPackable as fault:
        raise _refused(roots, fault) from None


def known_records(objects: Sequence[Any]) -> list[Ref] | None:
    """Return references to objects that are known while compiling and no values, or of several classes; None for
    anything else."""
    if not objects or any(not is_plain_object(one) for one in objects):
        return None
    leaves = jax.tree.leaves(list(objects))
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return None
    if len(set(map(type, objects))) < 2 and not jax.tree_util.all_leaves(list(objects)):
        return None
    with suppress(NotPackable), jax.ensure_compile_time_eval():
        made = _packed(list(objects), walk(list(objects)), {})
        table, order = KnownTable(made.columns, made.schema), [record.cls for record in made.schema.classes]
        numbers = [jnp.int32(number) for number in np.asarray(made.ids)]
        types = [RefType(table, made.schema, (order.index(type(one)),), False) for one in objects]
        return list(map(Ref, numbers, types))
    return None


def _packed(roots: list[Any], found: Found, rows: dict[type, int]) -> Packed:
    odd = next((k for k, root in enumerate(roots) if root is not None and not is_record(type(root))), None)
    if odd is not None:
        title = f"an object of type {type(roots[odd]).__name__} is no record"
        raise NotPackable(title, "pack objects of your own classes: named tuples, dataclasses", None, f"[{odd}]")
    class_of = {cls: k for k, cls in enumerate(found.classes)}
    kinds = np.zeros(len(found.order), np.int64)
    if len(class_of) > 1:
        kinds = np.fromiter(map(class_of.__getitem__, map(type, found.order)), np.int64, len(found.order))
    members = [np.flatnonzero(kinds == k) for k in range(len(class_of))]
    sizes = [_size(cls, len(member), rows) for cls, member in zip(class_of, members, strict=True)]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    number = np.full(len(found.order) + 1, -1, np.int32)
    for k, member in enumerate(members):
        number[member] = first[k] + np.arange(len(member))
    if first[-1] > np.iinfo(np.int32).max:
        raise NotPackable("there are more than 2**31 rows", "pack parts of the data, one after the other", None, "")
    numbering = Numbering(found, class_of, kinds, number)
    records, columns = [], list[Array]()
    for cls, member, size in zip(class_of, members, sizes, strict=True):
        record, of_class = _table(numbering, cls, member, size)
        records.append(record)
        columns += of_class
    ids = numbering.number[np.fromiter(map(found.places.__getitem__, map(id, roots)), np.int64, len(roots))]
    root_classes = sorted({class_of[type(root)] for root in roots if root is not None})
    leads_to = Pointer(tuple(root_classes), not roots or any(root is None for root in roots))
    return Packed(
        jnp.asarray(ids), tuple(map(jnp.asarray, columns)), Schema(tuple(records)), leads_to, marks(found.order)
    )


def _size(cls: type, count: int, rows: Mapping[type, int]) -> int:
    size = rows.get(cls, rounded(count))
    if size < count:
        title = f"there are {count} objects of {cls.__name__}, and `rows` gives them {size} rows"
        raise NotPackable(title, "leave the class out of `rows`, or give it more", None, "")
    return size


def _table(numbering: Numbering, cls: type, members: Array, rows: int) -> tuple[Record, list[Array]]:
    """The table of one class; `members` are the places of all its objects."""
    order = numbering.found.order
    _check_attributes(cls, order, members)
    kinds, columns = [], list[Array]()
    for name, values in numbering.found.classes[cls].items():
        try:
            kind, of_field = table_columns(numbering, values, rows)
        except Fault as fault:
            raise NotPackable(fault.title, fault.help, order[members[fault.place]], name) from None
        kinds.append((name, kind))
        columns += of_field
    return Record(cls, tuple(kinds), rows), columns


def _check_attributes(cls: type, order: list[Any], members: Array) -> None:
    """Refuse objects of a class without declared fields whose attributes differ."""
    if hasattr(cls, "_fields") or hasattr(cls, "__dataclass_fields__") or not hasattr(order[members[0]], "__dict__"):
        return
    objects = [order[k] for k in members.tolist()]
    names = set(vars(objects[0]))
    odd = next((o for o in objects if vars(o).keys() != names), None)
    if odd is not None:
        name = next(iter(vars(odd).keys() ^ names))
        title = f"some objects of {cls.__name__} have an attribute `{name}`, and others do not"
        raise NotPackable(title, f"give every object of the class the attribute: `{name} = None`", odd, "")


def _refused(roots: list[Any], fault: NotPackable) -> UsageError:
    path = "objects" if fault.holder is None else path_to(roots, fault.holder)
    place = f"{path}{'.' if fault.name and fault.name[0] != '[' else ''}{fault.name}"
    title = f"`{place}` cannot be packed: {fault.title}"
    return UsageError(Diagnostic("PCB450", title, helps=(fault.help,)))
