"""The result of a run: values, the status of each lane, and counts."""

from __future__ import annotations

import functools
import json
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.export

from pcbatch.data.host.ragged import Ragged
from pcbatch.diagnostics.short_repr import short
from pcbatch.ir.text.written import Written
from pcbatch.runtime.vm import wide_counters


@dataclass(frozen=True, slots=True)
class BlockStats:
    """One block: its source and, if statistics were asked for, its counts.

    Attributes:
        label: its name in the program, as `f.lower(xs).as_text("opt")` shows it.
        function: the function that it is of.
        lines: the lines of its source, in order.
        texts: the source of each primitive in it, as passes have left it.
        visits: batched executions (the strips of one visit are one). None without statistics.
        active: lanes that took part, summed over visits.
        offered: lanes that visits had room for, summed over them.
        sources: the source of each primitive as the user wrote it.
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
        """Whether a primitive contains this text, in the source or as passes have left it."""
        return any(text in t for t in self.texts) or any(source.says(text) for source in self.sources)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["trips", "visit_counts", "active_counts", "offered_counts"],
    meta_fields=["lanes", "infos"],
)
@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of one run; all but `trips` need `stats=True`.

    Counts are exact (the fields hold them in two words each), except that inside `jit` shares are computed in float32.

    Attributes:
        trips: int32[], iterations of the machine, summed over devices.
        lanes: their number; None in a program that was exported for any number of them.
    """

    trips: Any
    visit_counts: Any = field(repr=False)
    active_counts: Any = field(repr=False)
    offered_counts: Any = field(repr=False)
    lanes: int | None
    infos: tuple[BlockStats, ...] = field(repr=False)

    @property
    def blocks(self) -> tuple[BlockStats, ...]:
        """The blocks of the program in order, with concrete counts (not inside `jit`).

        Raises:
            ValueError: statistics were not collected.
        """
        self._need()
        counts = map(wide_counters.value, (self.visit_counts, self.active_counts, self.offered_counts))
        both = zip(self.infos, *counts, strict=True)
        return tuple(replace(info, visits=int(v), active=float(a), offered=float(o)) for info, v, a, o in both)

    def visits(self, text: str) -> Any:
        """Count the batched executions of the blocks that hold a primitive.

        Args:
            text: a part of the primitive's source, as the user wrote it. All primitives that contain it count. A
                primitive that costs less than a trip may be in several blocks, also for lanes that do not need it.

        Returns:
            An int, or inside `jit` an array int32[].

        Raises:
            ValueError: no primitive contains the text, or statistics were not collected.

        Example:
            >>> import jax.numpy as jnp, pcbatch
            >>> @pcbatch.batch(stats=True)
            ... def collatz(n):
            ...     while n != 1:
            ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
            ...     return n
            >>> stats = collatz.run(jnp.array([1, 6, 27])).stats
            >>> stats.visits("3 * n + 1") > 0
            True
        """
        self._need()
        return wide_counters.integer(self._of(self.visit_counts, text))

    def utilisation(self, text: str) -> Any:
        """Compute the share of lanes that took part in those executions, of those that they had room for.

        Args:
            text: as in `visits`.

        Returns:
            A float64 from 0 to 1, or inside `jit` an array float32[]; NaN if there was no execution.

        Raises:
            ValueError: no primitive contains the text, or statistics were not collected.
        """
        self._need()
        active, offered = (
            wide_counters.value(self._of(counts, text)) for counts in (self.active_counts, self.offered_counts)
        )
        return active / offered

    def _of(self, counts: Any, text: str) -> Any:
        return functools.reduce(wide_counters.plus, [counts[k] for k in self._matching(text)])

    def _matching(self, text: str) -> list[int]:
        blocks = [k for k, info in enumerate(self.infos) if info.says(text)]
        if not blocks:
            raise ValueError(f"no primitive contains {short(text)}")
        return blocks

    def _need(self) -> None:
        if self.visit_counts is None:
            raise ValueError(
                "statistics were not collected: use `pcbatch.batch(stats=True)` or `f.with_options(stats=True)`"
            )


@partial(jax.tree_util.register_dataclass, data_fields=["value", "status", "stats"], meta_fields=[])
@dataclass(frozen=True, slots=True)
class Result:
    """The result of `f.run(...)` and `f.map(...)`, a pytree of JAX.

    Attributes:
        value: the value that `f(...)` returns, with NaN (or the smallest number of an integer type, or False) in lanes
            that failed.
        status: int32[lanes] of `pcbatch.Status`: how each lane ended.
        stats: counts of the run, a `Stats`.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.batch
        ... def root(x):
        ...     assert x >= 0
        ...     return x ** 0.5
        >>> result = root.run(jnp.array([4.0, -1.0]))
        >>> result.value
        Array([ 2., nan], dtype=float32)
        >>> result.status == pcbatch.Status.OK
        Array([ True, False], dtype=bool)
    """

    value: Any
    status: Any
    stats: Stats


def _written(meta: tuple[int | None, tuple[BlockStats, ...]]) -> bytes:
    lanes, infos = meta
    return json.dumps({"lanes": lanes, "infos": [asdict(info) for info in infos]}).encode()


def _read(text: bytes | bytearray) -> tuple[int | None, tuple[BlockStats, ...]]:
    meta = json.loads(text)
    infos = (info | {"lines": tuple(info["lines"]), "texts": tuple(info["texts"])} for info in meta["infos"])
    return meta["lanes"], tuple(BlockStats(**info | {"sources": _sources(info)}) for info in infos)


def _sources(info: dict[str, Any]) -> tuple[Written, ...]:
    sources = info.get("sources", ())  # a file of an earlier version has none
    return tuple(Written(source["text"], source["whole"], tuple(source["parts"])) for source in sources)


# A program that gives a `Result` can be exported, written to a file and read in another process.
jax.export.register_pytree_node_serialization(
    Stats, serialized_name="pcbatch.Stats", serialize_auxdata=_written, deserialize_auxdata=_read
)
jax.export.register_pytree_node_serialization(
    Ragged,
    serialized_name="pcbatch.Ragged",
    serialize_auxdata=str.encode,
    deserialize_auxdata=lambda kind: kind.decode() or "list",  # a file of an earlier version says nothing of lists
)
jax.export.register_pytree_node_serialization(
    Result, serialized_name="pcbatch.Result", serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: ()
)
