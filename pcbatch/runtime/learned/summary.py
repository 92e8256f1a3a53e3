"""The summary of a learned policy: its visits on samples held out, those of other policies, and the lower bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pcbatch.diagnostics.tables import table


@dataclass(frozen=True, slots=True)
class BlockVisits:
    """The visits of one block on samples.

    Attributes:
        label: its label.
        what: the function that it is of.
        visits: how often the deployed policy visits it.
        bound: how often every policy does at least: the length of the longest chain of its executions of which each
            needs the one before.
    """

    label: str
    what: str
    visits: int
    bound: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The visits that a policy makes on samples that it was not learned from, beside what other policies make.

    Attributes:
        function: the name of the function.
        encoding: the encoding of states.
        samples: the number of examples.
        executions: the executions of blocks, of one example each.
        deployed: the name of the policy.
        policies: visits by the name of the policy.
        bound: the lower bound: the longest chains of all blocks, summed.
        sufficient: the share of the visits at which nothing of the block's kind was left to wait for. If it is 1 no
            schedule makes fewer visits.
        blocks: the same for each block.
        times: of the policies that could have been deployed: estimated time in some unit, or measured seconds.
        measured: whether the times were measured.
        alone: whether lanes are estimated to be faster one after the other, where there are no visits of all.
    """

    function: str
    encoding: str
    samples: int
    executions: int
    deployed: str
    policies: Mapping[str, int]
    bound: int
    sufficient: float
    blocks: tuple[BlockVisits, ...]
    times: Mapping[str, float] = field(default_factory=dict)
    measured: bool = False
    alone: bool = False

    def text(self) -> str:
        """Return a text of several lines."""
        auto = self.times.get("auto", 0.0)
        times = {name: f"{time / auto:.2f}" for name, time in self.times.items() if auto}
        rows = [(k, str(n), f"{n / max(self.bound, 1):.2f}", times.get(k, "")) for k, n in self.policies.items()]
        rows += [("lower bound", str(self.bound), "1.00", "")]
        blocks = [(b.label, b.what, str(b.visits), str(b.bound)) for b in self.blocks]
        lines = [
            f"{self.function}: {self.samples} samples held out, {self.executions} executions of blocks, "
            f'states of encoding "{self.encoding}"',
            "",
            table(("policy", "visits", "of the bound", "time"), rows, right=("visits", "of the bound", "time")),
            "",
            table(("block", "function", "visits", "at least"), blocks, right=("visits", "at least")),
            "",
            self._choice(),
            self._verdict(),
        ]
        return "\n".join(lines)

    def _choice(self) -> str:
        """Say in words that a policy is deployed, and by how much it wins."""
        what, of = f'deployed: "{self.deployed}"', "measured" if self.measured else "estimated"
        if self.alone and not self.measured:
            return f"{what}: lanes are estimated to be faster one after the other than together"
        others = {name: time for name, time in self.times.items() if name != self.deployed}
        if not others or self.deployed not in self.times:
            return what
        mine, rival = self.times[self.deployed], min(others, key=lambda name: others[name])
        if mine > others[rival]:
            return f'{what}: "{rival}" takes only {1 - others[rival] / mine:.0%} less {of} time'
        return f'{what}, {1 - mine / others[rival]:.0%} less {of} time than "{rival}", the next'

    def _verdict(self) -> str:
        if self.policies.get(self.deployed, 0) == self.bound:
            return "the deployed policy makes as few visits as any could"
        if self.sufficient == 1.0:
            return "no policy makes fewer visits: each visit had all that its block could still have waited for"
        return f"{self.sufficient:.0%} of the visits had all that their block could still have waited for"

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Summary:
        """Return the summary from its fields in JSON."""
        return cls(**{**fields, "blocks": tuple(BlockVisits(**block) for block in fields["blocks"])})
