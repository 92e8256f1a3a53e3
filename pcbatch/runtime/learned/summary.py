"""The summary of a learned policy: its visits on samples held out, those of other policies, and the lower bound."""

from __future__ import annotations

import html
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
        rows = [
            (name, str(n), f"{n / max(self.bound, 1):.2f}", self._relative(name)) for name, n in self.policies.items()
        ]
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

    def _relative(self, name: str) -> str:
        """The time of a policy, relative to that of the function without a schedule."""
        known = name in self.times and self.times.get("auto")
        return f"{self.times[name] / self.times['auto']:.2f}" if known else ""

    def _choice(self) -> str:
        """Which policy is deployed, and by how much it wins."""
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

    def html(self) -> str:
        """Return a page for a browser, with a bar for each policy."""
        most = max([*self.policies.values(), self.bound, 1])
        bars = [(name, n, n) for name, n in self.policies.items()] + [("lower bound", self.bound, self.bound)]
        rows = "".join(
            f'<tr><td>{html.escape(name)}</td><td class="n">{n}</td>'
            f'<td><div style="width:{100 * wide / most:.1f}%"></div></td></tr>'
            for name, n, wide in bars
        )
        style = (
            "body{font:14px sans-serif;max-width:50em;margin:2em auto}table{width:100%}td{padding:2px 8px}"
            "td:first-child,.n{white-space:nowrap;width:1%}.n{text-align:right}div{background:#48a;height:1em}"
        )
        name = html.escape(self.function)
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}: visits</title><style>{style}</style>'
            f"<h1>{name}: visits by policy</h1><table>{rows}</table><pre>{html.escape(self.text())}</pre></html>\n"
        )

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Summary:
        """Return the summary from its fields in JSON."""
        return cls(**{**fields, "blocks": tuple(BlockVisits(**block) for block in fields["blocks"])})
