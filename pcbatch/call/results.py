"""What a run gives: values, how each lane ended, and counts."""

from __future__ import annotations

import functools
import json
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import jax
import jax.export

from pcbatch.diagnostics.short_repr import short
from pcbatch.ir.written import Written
from pcbatch.runtime.vm import wide_counters


@dataclass(frozen=True, slots=True)
class BlockStats:
    """One block: where it comes from and, when statistics were asked for, how often it ran.

    `visits` counts batched executions (the strips of one visit are one); `active` is the number of lanes that took
    part, summed over them, and `offered` the number that they had room for.
    """

    label: str
    function: str
    lines: tuple[int, ...]
    texts: tuple[str, ...]
    visits: int | None = None
    active: float | None = None
    offered: float | None = None
    sources: tuple[Written, ...] = field(default=(), repr=False)

    def says(self, text: str) -> bool:
        """Does a primitive contain this text, in the source or as passes have left it?"""
        return any(text in t for t in self.texts) or any(source.says(text) for source in self.sources)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["trips", "visit_counts", "active_counts", "offered_counts"],
    meta_fields=["lanes", "infos"],
)
@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of one run. `trips`: int32[], iterations of the machine, summed over devices. The rest needs `stats=True`;
    counts are exact (the fields hold them in two words each), except that inside `jit` shares are computed in float32.
    `lanes`: None in a program that was exported for any number of them.
    """

    trips: Any
    visit_counts: Any = field(repr=False)
    active_counts: Any = field(repr=False)
    offered_counts: Any = field(repr=False)
    lanes: int | None
    infos: tuple[BlockStats, ...] = field(repr=False)

    @property
    def blocks(self) -> tuple[BlockStats, ...]:
        """Per block, with concrete counts (not inside `jit`)."""
        self._need()
        counts = self.visit_counts, self.active_counts, self.offered_counts
        return tuple(
            BlockStats(i.label, i.function, i.lines, i.texts, int(v), float(a), float(o), i.sources)
            for i, v, a, o in zip(self.infos, *map(wide_counters.value, counts), strict=True)
        )

    def visits(self, text: str) -> Any:
        """Batched executions of the blocks that hold a primitive whose source contains `text`, as the user wrote it.

        What costs less than a trip may stand in several blocks, also for lanes that do not need it.
        """
        self._need()
        return wide_counters.integer(self._of(self.visit_counts, text))

    def utilisation(self, text: str) -> Any:
        """The share of lanes that took part in those executions, of those that they had room for: float in [0, 1]."""
        self._need()
        active, offered = (
            wide_counters.value(self._of(counts, text)) for counts in (self.active_counts, self.offered_counts)
        )
        return active / offered

    def _of(self, counts: Any, text: str) -> Any:
        return functools.reduce(wide_counters.plus, [counts[k] for k in self._matching(text)])

    def _matching(self, text: str) -> list[int]:
        found = [k for k, info in enumerate(self.infos) if info.says(text)]
        if not found:
            raise ValueError(f"no primitive contains {short(text)}")
        return found

    def _need(self) -> None:
        if self.visit_counts is None:
            raise ValueError(
                "statistics were not collected: use `pcbatch.batch(stats=True)` or `f.with_options(stats=True)`"
            )


@partial(jax.tree_util.register_dataclass, data_fields=["value", "status", "stats"], meta_fields=[])
@dataclass(frozen=True, slots=True)
class Result:
    """What `f.run(...)` gives. `value`: as `f(...)`, with NaN (or the smallest number of an integer type, or
    False) in lanes that failed. `status`: int32[lanes] of `pcbatch.Status`."""

    value: Any
    status: Any
    stats: Stats


def _written(meta: tuple[int | None, tuple[BlockStats, ...]]) -> bytes:
    lanes, infos = meta
    return json.dumps({"lanes": lanes, "infos": [asdict(info) for info in infos]}).encode()


def _read(text: bytes | bytearray) -> tuple[int | None, tuple[BlockStats, ...]]:
    found = json.loads(text)
    infos = (info | {"lines": tuple(info["lines"]), "texts": tuple(info["texts"])} for info in found["infos"])
    return found["lanes"], tuple(BlockStats(**info | {"sources": _sources(info)}) for info in infos)


def _sources(info: dict[str, Any]) -> tuple[Written, ...]:
    found = info.get("sources", ())  # a file of an earlier version has none
    return tuple(Written(source["text"], source["whole"], tuple(source["parts"])) for source in found)


# A program that gives a `Result` can be exported, written to a file and read in another process.
jax.export.register_pytree_node_serialization(
    Stats, serialized_name="pcbatch.Stats", serialize_auxdata=_written, deserialize_auxdata=_read
)
jax.export.register_pytree_node_serialization(
    Result, serialized_name="pcbatch.Result", serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: ()
)
