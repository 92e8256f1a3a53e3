"""Make records of texts and numbers where a variable has them, and tuples of displays, on different ways.

before:  e = { "x" }                       after:  e = { "x" }; e = { e as a record }
         e = { of_display(C, a, b) }               e = { of_display(C, a, b) }; e = { e as a record }

Such a variable refers to records then, so that a tree has leaves that are texts or numbers. Type inference finds which
variables are such: their types have no other join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count
from typing import Any

from pcbatch.data.columns import Unset
from pcbatch.data.objects.made import made_schema
from pcbatch.data.objects.tuples.atoms import kind_of_part
from pcbatch.data.objects.tuples.classes import AtomValue, TupleValue
from pcbatch.data.objects.tuples.mixed import ATOM, Elements, Pattern, as_mixed
from pcbatch.data.optional import Optional
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.stored import UnlikeError
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.ops import Expr, Prim
from pcbatch.ir.roles import reads, rename_writes, writes
from pcbatch.lowering.typing.abstract_values import Known
from pcbatch.lowering.typing.convert_types import Cell, objects_of
from pcbatch.lowering.typing.inferred import Inferred, VariableKey

MIXED = ".mixed"  # in the names of what a variable is before it becomes a record


def run(source: CfgProgram, split: CfgProgram, inferred: Inferred) -> CfgProgram:
    """Return `source` with records made where variables ask for it.

    `split` is the same program with live ranges split, for which types were inferred.
    """
    if not any(issubclass(one.cls, TupleValue | AtomValue) for one in made_schema().classes):
        return source
    patterns = {place: pattern for place, pattern in _patterns(split, inferred) if pattern is not None}
    params = {
        (f.name, k): patterns[f.name, p]
        for f in split.functions
        for k, p in enumerate(f.params)
        if (f.name, p) in patterns
    }
    pairs = zip(source.functions, split.functions, strict=True)
    return replace(source, functions=tuple(_mixed(f, typed, patterns, params) for f, typed in pairs))


def _patterns(split: CfgProgram, inferred: Inferred) -> Iterator[tuple[VariableKey, Pattern]]:
    """The variables with the places in them where texts or numbers, and tuples, meet."""
    for place, pairs in inferred.unlike.items():
        yield place, _pattern([objects_of(one) for pair in pairs for one in pair])
    for (function, label, k), error in inferred.errors.items():
        if isinstance(error, UnlikeError):
            kinds = {kind_of_part(value) for value in error.values}
            if kinds >= {"tuple"} and len(kinds) == 2 and None not in kinds:
                for name in reads(split.function(function).block(label).ops[k]):
                    type_ = inferred.types.get((function, name))
                    value = None if type_ is None else objects_of(type_)
                    if isinstance(value, LaneList | list) and _has_atom(value, error.path):
                        yield (function, name), Elements(_at(value, error.path))


def _has_atom(value: Any, path: Sequence[int]) -> bool:
    parts = value if isinstance(value, list) else [value.columns]
    for k in path:
        parts = [part[k] for part in parts if type(part) is tuple and k < len(part)]
    return any(_kind(part) in ("text", "number") for part in parts)


def _at(value: Any, path: Sequence[int]) -> Pattern:
    """The pattern of a part of the elements of a list."""
    if not path:
        return ATOM
    one = value[0] if isinstance(value, list) else value.columns
    first, *rest = path
    return tuple(_at([part], rest) if k == first else None for k, part in enumerate(one))


def _pattern(values: Sequence[Any]) -> Pattern:
    """The places where values differ as records alone can; None where they do not."""
    values = [one.value if isinstance(one, Optional) else one for one in values]
    values = [one for one in values if one is not None and not isinstance(one, Unset)]
    kinds = {_kind(one) for one in values}
    if len(kinds) > 1 and None not in kinds:
        return ATOM
    if all(type(one) is tuple for one in values) and len({len(one) for one in values}) == 1:
        return _all(tuple(_pattern(each) for each in zip(*values, strict=True)))
    if values and all(isinstance(one, LaneList | list) for one in values):
        inside = [part for one in values for part in (one if isinstance(one, list) else [one.columns])]
        return None if (found := _pattern(inside)) is None else Elements(found)
    return None


def _all(patterns: tuple[Pattern, ...]) -> Pattern:
    return None if all(one is None for one in patterns) else patterns


def _kind(value: Any) -> str | None:
    if isinstance(value, Cell):
        leaf = value.leaf
        if isinstance(leaf, Known):
            return "text" if isinstance(leaf.value, str) else "number" if isinstance(leaf.value, int | float) else None
        return "number"
    return kind_of_part(value)


def _mixed(
    function: Function,
    split: Function,
    patterns: Mapping[VariableKey, Pattern],
    params: Mapping[tuple[str, int], Pattern],
) -> Function:
    """A function with records made after the definitions of some variables, and before some calls."""
    fresh, temps = count(function.last_label + 1), list[str]()
    blocks = []
    for block, typed in zip(function.blocks, split.blocks, strict=True):
        ops: list[Op] = []
        for k, (op, whole) in enumerate(zip(block.ops, typed.ops, strict=True)):
            if isinstance(op, Call):
                args = list(op.args)
                for j, arg in enumerate(args):
                    if (pattern := params.get((op.func, j))) is not None and not _is_made(block, k, arg, pattern):
                        temps.append(f"{arg}{MIXED}{next(fresh)}")
                        ops.append(Prim((temps[-1],), Expr(arg, (arg,), _maker(pattern)), op.loc))
                        args[j] = temps[-1]
                op = replace(op, args=tuple(args))
            made: list[Op] = []
            new: dict[str, str] = {}
            for name, web in zip(writes(op), writes(whole), strict=True):
                pattern = patterns.get((function.name, web))
                own = isinstance(op, Prim) and op.expr.fn is not None and op.expr.fn is _maker(pattern)
                if pattern is not None and not own and MIXED not in name:
                    temps.append(f"{name}{MIXED}{next(fresh)}")
                    new[name] = temps[-1]
                    made.append(Prim((name,), Expr(name, (temps[-1],), _maker(pattern)), op.loc))
            ops += [rename_writes(op, lambda name, new=new: new.get(name, name)) if new else op, *made]  # type: ignore[misc]
        blocks.append(replace(block, ops=tuple(ops)))
    if tuple(blocks) == function.blocks:
        return function
    return replace(function, blocks=tuple(blocks), types={**function.types, **dict.fromkeys(temps)})


def _is_made(block: Block, k: int, arg: str, pattern: Pattern) -> bool:
    """Whether an argument of a call has just been made so."""
    before = block.ops[k - 1] if k else None
    return isinstance(before, Prim) and before.dsts == (arg,) and before.expr.fn is _maker(pattern)


@lru_cache(maxsize=1024)
def _maker(pattern: Pattern) -> Any:
    return partial(as_mixed, pattern=pattern)
