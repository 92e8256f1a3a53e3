"""The records of one block, of lanes or of tasks: which values they hold, and what the pullback of the block does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from pcbatch.ir.stack import StackBlock
from pcbatch.ir.tasks import TaskBlock
from pcbatch.runtime.vm.block_body import Values
from pcbatch.transforms.tape.block_ssa import Body, ReadRegister, Recordable, SharedValue
from pcbatch.transforms.tape.block_vjp import Env, pull_back_shared
from pcbatch.transforms.tape.needs import PLAIN, Needs
from pcbatch.transforms.tape.pullback_reads import PullbackReads
from pcbatch.transforms.tape.record_layout import RecordLayout, append, record_layout, stored_as


@dataclass(frozen=True, eq=False)
class RecordedBlock:
    """The records that a tape holds of one block, in buffers of its own.

    Attributes:
        index: the number of the block in its program.
        body: the block, in single assignment.
        reads: what its pullback reads.
        unchanging: registers that are read again when a record is undone, as they never change.
        deferred: the shared values whose cotangents are pulled back from many records at once.
        numbers: the columns of a record that hold no value of the block, but say where it belongs.
    """

    index: int
    body: Body
    reads: PullbackReads
    unchanging: frozenset[str]
    deferred: tuple[str, ...]
    numbers: tuple[str, ...]

    @property
    def source(self) -> StackBlock | TaskBlock:
        """The block in its program."""
        raise NotImplementedError

    @cached_property
    def constants(self) -> tuple[ReadRegister, ...]:
        """The values that the pullback reads from registers that never change."""
        return tuple(s for s in self.reads.sources if isinstance(s, ReadRegister) and s.name in self.unchanging)

    @cached_property
    def recorded(self) -> tuple[Recordable, ...]:
        """The values that a record holds."""
        return tuple(s for s in self.reads.sources if s not in self.constants)

    @cached_property  # the host asks for it in every gradient
    def record_layout(self) -> RecordLayout:
        """The columns of one record."""
        types: dict[str, tuple[tuple[int, ...], Any]] = {s.key: stored_as(s.type) for s in self.recorded}
        return record_layout(types | dict.fromkeys(self.numbers, ((), np.int32)))

    def key(self, name: str) -> str:
        """The state key of a part of the records."""
        return f"tape:{self.index}:{name}"

    @property
    def count(self) -> str:
        """The state key of the number of records."""
        return self.key("n")

    @property
    def buffers(self) -> dict[str, str]:
        """State keys of the records' buffers."""
        return {name: self.key(name) for name in self.record_layout.buffers}

    @property
    def state_keys(self) -> tuple[str, ...]:
        """The state keys of the number of records, and of their buffers."""
        return (self.count, *self.buffers.values())

    def rows(self, state: Mapping[str, Any]) -> int:
        """The rows of the buffers in a state, or of a tape by state key."""
        rows: int = state[self.state_keys[1]].shape[-2]
        return rows

    def bytes(self) -> int:
        """The number of bytes of one record."""
        return sum(width * np.dtype(dtype).itemsize for width, dtype in self.record_layout.buffers.values())

    def empty(self, rows: int) -> Values:
        """The state without records, with room for so many."""
        state: Values = {self.count: jnp.zeros((), jnp.int32)}
        return state | {self.key(name): array for name, array in self.record_layout.empty(rows).items()}

    def appended(self, state: Values, rows: Values, pad: int = 0) -> Values:
        """The buffers in a state with the rows of a visit behind all records; `pad`: rows before the first record."""
        end = pad + state[self.count] if pad else state[self.count]
        return {key: append(state[key], end, rows[name]) for name, key in self.buffers.items()}

    def of_shared(self, env: Env, deferred: Mapping[int, Any], width: int, needs: Needs = PLAIN) -> dict[str, Any]:
        """The cotangents of shared values by name, summed over `width` records, from those that were `deferred`."""
        aliases = {n: deferred[first] for n, first in self.reads.alias_of.items() if first in deferred}
        pulled = pull_back_shared(self.body, env, {**deferred, **aliases}, width, needs)
        numbers = {s.name: s.number for s in self.body.sources if isinstance(s, SharedValue)}
        return {v: pulled[numbers[v]] for v in self.deferred if numbers[v] in pulled}
