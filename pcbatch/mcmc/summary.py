"""A table of draws: one row for each coordinate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.mcmc import convergence
from pcbatch.mcmc.target import leaves_by_name

QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True)
class Row:
    """The summary of one coordinate."""

    mean: float
    sd: float
    q5: float
    median: float
    q95: float
    ess_bulk: float
    ess_tail: float
    rhat: float


class Summary(Mapping[str, Row]):
    """Rows by the name of the coordinate; its text is a table."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = dict(rows)

    def __getitem__(self, name: str) -> Row:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        width = max(len(name) for name in self._rows)
        columns = "".join(
            f"{name:>9}" for name in ("mean", "sd", "5%", "median", "95%", "ess_bulk", "ess_tail", "r_hat")
        )
        lines = [f"{'':{width}} {columns}"]
        for name, r in self._rows.items():
            numbers = "".join(f"{x:9.4g}" for x in (r.mean, r.sd, r.q5, r.median, r.q95))
            lines.append(f"{name:{width}} {numbers}{r.ess_bulk:9.0f}{r.ess_tail:9.0f}{r.rhat:9.3f}")
        return "\n".join(lines)


def summarise(draws: Any) -> Summary:
    """Summarise a pytree with leaves [chains, draws, ...]; what needs more than four draws is NaN with fewer."""
    rows: dict[str, Row] = {}
    for name, leaf in leaves_by_name(draws).items():
        x = np.asarray(leaf, np.float64).reshape(*leaf.shape[:2], -1)
        quantiles = np.quantile(x, QUANTILES, axis=(0, 1))
        columns = [x.mean((0, 1)), x.std((0, 1), ddof=1) if x[..., 0].size > 1 else np.zeros(x.shape[2]), *quantiles]
        for f in (convergence.ess_bulk, convergence.ess_tail, convergence.rhat):
            columns.append(f(x) if x.shape[1] >= convergence.LEAST_DRAWS else np.full(x.shape[2], np.nan))
        indices = [f"[{', '.join(map(str, i))}]" for i in np.ndindex(leaf.shape[2:])] if leaf.ndim > 2 else [""]
        for index, numbers in zip(indices, np.array(columns).T, strict=True):
            rows[name + index] = Row(*map(float, numbers))
    return Summary(rows)
