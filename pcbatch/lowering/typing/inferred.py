"""The result of type inference: the types of variables, and what was found on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import jax

from pcbatch.data.columns import Unset
from pcbatch.decisions import NONE, Decisions
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.cfg import Call, CfgProgram
from pcbatch.ir.ops import Branch
from pcbatch.lowering.typing.abstract_values import Abstract, Known
from pcbatch.lowering.typing.trace import Traced

VariableKey = tuple[str, str]  # function, variable
OpKey = tuple[str, str, int]  # function, block, index of the operation
NOTHING = Abstract(jax.tree.structure(Unset()), ())


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two definitions of one variable that have no common type."""

    place: VariableKey
    first: Abstract
    first_loc: Loc | None
    second: Abstract
    loc: Loc | None
    cause: str
    kind: str  # as in `JoinError`


@dataclass(slots=True)
class Inferred:
    """The result of inference, types and errors.

    `args` gives the entry's parameters as the caller typed them, `types` has no variable that no reachable code
    assigns, `sources` says where a type first came from. An operation is in `traced` or in `errors`, or not at all
    if the type of an operand is not known. `widened` are variables whose structure has become that of a container of
    the lane. `reachable` has the blocks of each function that control may reach. `heap` is the type of the heap of
    records made in lanes, if there are classes of them. `wants` has what only records can do: classes of which there
    could be some, tables of packed objects that lanes change.
    """

    args: Mapping[str, Abstract] = field(default_factory=dict)
    types: dict[VariableKey, Abstract] = field(default_factory=dict)
    sources: dict[VariableKey, Loc | None] = field(default_factory=dict)
    traced: dict[OpKey, Traced] = field(default_factory=dict)
    reachable: dict[str, set[str]] = field(default_factory=dict)
    errors: dict[OpKey, Exception] = field(default_factory=dict)
    conflicts: dict[VariableKey, Conflict] = field(default_factory=dict)
    widened: set[VariableKey] = field(default_factory=set)
    results: dict[str, tuple[str, ...]] = field(default_factory=dict)
    heap: Abstract | None = None
    unlike: dict[VariableKey, dict[tuple[Abstract, Abstract], None]] = field(default_factory=dict)
    wants: Decisions = NONE

    def returns(self, call: Call) -> bool:
        """Return whether the callee is known to return."""
        return all((call.func, result) in self.types for result in self.results[call.func])


def untyped(program: CfgProgram) -> Inferred:
    """Return a result without types, in which every block counts as reachable."""
    return Inferred(reachable={f.name: {block.label for block in f.blocks} for f in program.functions})


def branch_targets(branch: Branch, cond: Abstract | None) -> tuple[str, ...]:
    """Return the successors that a branch may take, by the type of its condition; none if that is not known yet."""
    if cond is None:
        return ()
    if cond == NOTHING:
        return (branch.on_false,)
    if len(cond.leaves) == 1 and isinstance(cond.leaves[0], Known):
        return (branch.on_true if cond.leaves[0].value else branch.on_false,)
    return (branch.on_true, branch.on_false)
