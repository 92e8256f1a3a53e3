"""`Learned`: the policy that a schedule was learned to be: a table of states, the rule of the lemma, or a fixed one.

A state that the table does not have is looked up in the next, coarser table. If no table has it, the rule decides. It
runs the block of which the largest share waits, of all that could come before the next visit of it (ED-Batch, ICML
2023, lemma 2.1). A machine cannot see what comes. So the rule has learned how much of each block is to come, for each
lane or record that waits for a block.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.plan import SCHEDULES
from pcbatch.runtime.learned import encodings
from pcbatch.runtime.learned.summary import Summary
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import Blocks

TASKS, LANES = "tasks", "lanes"
TABLE, LEMMA = "learned", "lemma"
DEPLOYED = (TABLE, LEMMA, *SCHEDULES)


@dataclass(frozen=True, slots=True)
class StateTable:
    """The block that runs in each state of one encoding, by number."""

    encoding: str
    states: tuple[tuple[int, ...], ...]
    actions: tuple[int, ...]


@dataclass(frozen=True)
class Learned:
    """A schedule that `pcbatch.learn_schedule` has found to be the best: which block runs next, by what waits.

    Given as `plan=pcbatch.Plan(schedule=...)` to the function that it was learned for. Results never depend on it.

    Attributes:
        machine: "tasks" if calls run side by side, "lanes" if not.
        labels: the labels of the blocks, in the order of the digits of a state.
        source: what identifies the source of the function.
        blocks: what identifies the blocks.
        ahead: for each block that something waits for, how much of each block is to come before any of the same block.
            Sixty-fourths, of which sums are exact.
        tables: from fine to coarse.
        deployed: which policy it is: "learned", "lemma" (the rule alone), or the name of a fixed schedule, which a plan
            then has in its place; "auto" is the machine's own order.
        summary: the visits that it made on samples held out, beside those of other policies and the lower bound.

    Example:
        >>> policy = pcbatch.Learned.load("tagger.json")  # doctest: +SKIP
        >>> fast = tagger.with_options(plan=pcbatch.Plan(schedule=policy))  # doctest: +SKIP
    """

    machine: str
    labels: tuple[str, ...]
    source: str
    blocks: str
    ahead: tuple[tuple[float, ...], ...] = ()
    tables: tuple[StateTable, ...] = ()
    deployed: str = TABLE
    summary: Summary | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The name of the policy in reports."""
        return self.deployed

    # In a machine

    def chosen(self, waiting: jax.Array) -> jax.Array:
        """Return the number of the block that runs next, int32[], for what waits, int32[blocks]. Inside a trace."""
        counts = waiting.astype(jnp.float32)
        expected = jnp.maximum(jnp.sum(counts[:, None] * jnp.asarray(self.ahead, jnp.float32), axis=0), 1.0)
        best = jnp.argmax(jnp.where(waiting > 0, counts / expected, -1.0)).astype(jnp.int32)
        for table in reversed(self.tables):
            if not table.states:
                continue
            state = encodings.traced_digits(table.encoding, waiting).astype(jnp.int8)
            same = jnp.all(jnp.asarray(table.states, jnp.int8) == state[None, :], axis=1)
            action = jnp.asarray(table.actions, jnp.int32)[jnp.argmax(same)]
            best = jnp.where(jnp.any(same) & (waiting[action] > 0), action, best)
        return best

    def trip(self, blocks: Blocks, carry: Values) -> Values:
        """Return the state of a machine of lanes after one trip, in which one block runs.

        A machine of other blocks, as that of gradients, makes sweeps.
        """
        if self.machine != LANES or blocks.labels != self.labels:
            return blocks.sweep(range(len(blocks)), carry)
        return blocks.run(self.chosen(blocks.waiting(carry)), carry)

    # On the host

    @cached_property
    def _lookup(self) -> tuple[tuple[str, dict[tuple[int, ...], int]], ...]:
        return tuple((t.encoding, dict(zip(t.states, t.actions, strict=True))) for t in self.tables)

    def choose(self, waiting: np.ndarray) -> int:
        """Return the number of the block that runs next, for what waits, int[blocks], of which some is not zero."""
        for encoding, table in self._lookup:
            action = table.get(encodings.digits(encoding, waiting))
            if action is not None and waiting[action] > 0:
                return action
        counts = waiting.astype(np.float32)
        expected = np.maximum(counts @ np.array(self.ahead, np.float32), np.float32(1))
        return int(np.argmax(np.where(waiting > 0, counts / expected, -1.0)))

    @property
    def states(self) -> int:
        """The number of states that the tables have."""
        return sum(len(table.states) for table in self.tables)

    def brief(self) -> str:
        """Return a line about what was learned."""
        what = f"a learned schedule of {self.states} states" if self.tables else "the rule of the lemma, learned"
        if self.summary is None:
            return what
        made, bound = self.summary.policies[self.deployed], self.summary.bound
        return f"{what}: {made} visits on {self.summary.samples} samples held out, and {bound} are needed at least"

    def report(self) -> str:
        """Return a text with the visits that the policy makes, beside those of fixed policies and the lower bound."""
        made = "no counts are known" if self.summary is None else self.summary.text()
        kind = "calls side by side" if self.machine == TASKS else "lanes"
        what = f"{self.states} states" if self.deployed == TABLE else f'"{self.deployed}"'
        return f"a schedule of {len(self.labels)} blocks for {kind}, {what}\n{made}"

    def html(self, path: str | Path) -> None:
        """Write the report as a page for a browser; it loads nothing else."""
        Path(path).write_text(f"<!doctype html><pre>{html.escape(self.report())}</pre>", encoding="utf-8")

    def save(self, path: str | Path) -> None:
        """Write the policy to a file, as JSON."""
        fields = asdict(self) | {"tables": [(t.encoding, t.states, t.actions) for t in self.tables]}
        text = json.dumps({"format": FORMAT, "version": VERSION, **fields}, indent=1) + "\n"
        Path(path).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Learned:
        """Read a policy that `save` has written.

        Raises:
            UsageError: the file holds no policy, or one of another version.
        """
        found = _fields_of(Path(path).read_text(encoding="utf-8"), str(path))
        tables = tuple(
            StateTable(e, tuple(map(tuple, states)), tuple(actions)) for e, states, actions in found["tables"]
        )
        try:
            summary = None if found["summary"] is None else Summary.of_fields(found["summary"])
        except (KeyError, TypeError):
            raise _damaged(str(path)) from None
        labels, ahead = tuple(found["labels"]), tuple(map(tuple, found["ahead"]))
        names = found["machine"], labels, found["source"], found["blocks"]
        return cls(*names, ahead, tables, found["deployed"], summary)


# Files: one object with a format, a version and the fields of the policy, all of them checked.

FORMAT, VERSION = "pcbatch learned schedule", 2


def _fields_of(text: str, path: str) -> Mapping[str, Any]:
    """Return the fields of a policy from the text of a file.

    Raises:
        UsageError: The text is no policy, or one of another version. (PCB426)
    """
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _refused(f"{short(path)} holds no learned schedule", "give a file that `policy.save(path)` has written")
    if found.get("version") != VERSION:
        title = f"{short(path)} holds a learned schedule of version {short(found.get('version'))}, not {VERSION}"
        raise _refused(title, "learn it again with `pcbatch.learn_schedule`")
    if not _is_whole(found):
        raise _damaged(path)
    return found


def _damaged(path: str) -> UsageError:
    """Return the error about a file whose fields are not those of a policy."""
    return _refused(f"the learned schedule in {short(path)} is damaged", "learn it again, or copy the file again")


def _is_whole(found: Mapping[str, Any]) -> bool:
    """Whether the fields have the types of a policy, and every number is one of its blocks."""
    labels, ahead, tables = (found.get(key) for key in ("labels", "ahead", "tables"))
    if not (isinstance(labels, list) and labels and all(isinstance(label, str) for label in labels)):
        return False
    if not (isinstance(tables, list) and found.get("machine") in (TASKS, LANES)):
        return False
    if not (isinstance(ahead, list) and len(ahead) == len(labels) and found.get("deployed") in DEPLOYED):
        return False
    if not all(isinstance(row, list) and [type(x) for x in row] == [float] * len(labels) for row in ahead):
        return False
    texts = all(isinstance(found.get(key), str) for key in ("source", "blocks"))
    return texts and isinstance(found.get("summary"), dict | None) and all(_is_table(table, labels) for table in tables)


def _is_table(table: object, labels: list[str]) -> bool:
    if not (isinstance(table, list) and len(table) == 3 and table[0] in encodings.ENCODINGS):
        return False
    _, states, actions = table
    if not (_are_blocks(actions, labels) and isinstance(states, list) and len(states) == len(actions)):
        return False
    return all(
        isinstance(state, list) and len(state) == len(labels) and all(_is_number(x, len(labels) + 2) for x in state)
        for state in states
    )


def _are_blocks(numbers: object, labels: list[str]) -> bool:
    return isinstance(numbers, list) and all(_is_number(k, len(labels)) for k in numbers)


def _is_number(value: object, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < end


def _refused(title: str, help: str) -> UsageError:
    return UsageError(Diagnostic("PCB426", title, helps=(help,)))
