"""The summary of a learned policy: its visits on the samples, those of fixed policies, and the lower bound."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pcbatch.diagnostics.tables import table


@dataclass(frozen=True, slots=True)
class BlockVisits:
    """The visits of one block on the samples.

    Attributes:
        label: its label.
        what: the function that it is of.
        visits: how often the learned policy visits it.
        bound: how often every policy does at least: the length of the longest chain of its executions of which each
            needs the one before.
    """

    label: str
    what: str
    visits: int
    bound: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The visits that a learned policy makes on its samples, beside what other policies make.

    Attributes:
        function: the name of the function.
        encoding: the encoding of states.
        samples: the number of examples.
        executions: the executions of blocks, of one example each.
        policies: visits by the name of the policy; "learned" is this one.
        bound: the lower bound: the longest chains of all blocks, summed.
        sufficient: the share of the visits at which nothing of the block's kind was left to wait for. If it is 1 no
            schedule makes fewer visits.
        unknown: the share of the visits that were chosen by the default rule.
        blocks: the same for each block.
    """

    function: str
    encoding: str
    samples: int
    executions: int
    policies: Mapping[str, int]
    bound: int
    sufficient: float
    unknown: float
    blocks: tuple[BlockVisits, ...]

    def text(self) -> str:
        """Return a text of several lines."""
        rows = [(name, str(n), f"{n / max(self.bound, 1):.2f}") for name, n in self.policies.items()]
        rows += [("lower bound", str(self.bound), "1.00")]
        blocks = [(b.label, b.what, str(b.visits), str(b.bound)) for b in self.blocks]
        lines = [
            f"{self.function}: {self.samples} samples, {self.executions} executions of blocks, "
            f'states of encoding "{self.encoding}"',
            "",
            table(("policy", "visits", "of the bound"), rows, right=("visits", "of the bound")),
            "",
            table(("block", "function", "visits", "at least"), blocks, right=("visits", "at least")),
            "",
            self._verdict(),
        ]
        return "\n".join(lines)

    def _verdict(self) -> str:
        learned = self.policies.get("learned", 0)
        if learned == self.bound:
            return "the learned policy makes as few visits as any could"
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
