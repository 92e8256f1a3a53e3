"""Refuse messages whose text is not known: of a record, the text of all it leads to; of a number, whether it is a bool.

refused:  print(node)    where `node` refers to a record; `print(node.word)` is none
refused:  print(c)       where `c` is a bool on some paths and another number on others
"""

from __future__ import annotations

from collections.abc import Iterator

import jax

from pcbatch.data.objects.made import mentions_made
from pcbatch.data.objects.questions import RECORDS
from pcbatch.data.origins import Origin
from pcbatch.data.texts.known_texts import MIXED, MIXED_HELPS
from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.message import Message, variables
from pcbatch.ir.ops import Fail, Print
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.inferred import Inferred


def run(program: CfgProgram, inferred: Inferred) -> list[Diagnostic]:
    """Return a diagnostic for each message that shows a record, or a number that may be a bool."""
    records = inferred.heap is not None or any(value.tree.node_data() for value in inferred.args.values())
    found: list[Diagnostic] = []
    for function, message, loc in _messages(program, inferred):
        for name in variables(message):
            value = inferred.types.get((function, name))
            if value is not None and Origin.MIXED in value.origins:
                shown = None if loc is None else Label(loc)
                found.append(Diagnostic("PCB304", MIXED, shown, helps=MIXED_HELPS))
            if value is not None and records and _has_records(value):
                found.append(_refused(value, loc))
    return list(dict.fromkeys(found))


def _messages(program: CfgProgram, inferred: Inferred) -> Iterator[tuple[str, Message, Loc | None]]:
    for function in program.functions:
        for block in function.blocks:
            if block.label not in inferred.reachable.get(function.name, ()):
                continue
            yield from ((function.name, op.message, op.loc) for op in block.ops if isinstance(op, Print))
            if isinstance(block.terminator, Fail):
                yield function.name, block.terminator.message, block.terminator.loc


def _has_records(value: Abstract) -> bool:
    parts = jax.tree.leaves(_nodes(value), is_leaf=lambda part: isinstance(part, RECORDS))
    return any(isinstance(part, RECORDS) for part in parts)


def _nodes(value: Abstract) -> object:
    return jax.tree.unflatten(value.tree, list(range(len(value.leaves))))


def _refused(value: Abstract, loc: Loc | None) -> Diagnostic:
    primary = None if loc is None else Label(loc, f"this shows {value}")
    kind = "record that is made in a lane" if mentions_made(value.tree) else "packed object"
    title = f"the text of a {kind} is not known in a lane"
    return Diagnostic("PCB320", title, primary, helps=("show what it holds: `print(node.word)`",))
