"""Programs of the strategy "local": local static autobatching (section 2 of Radul et al., MLSys 2020).

Lanes wait for each other at calls: a call runs for exactly the lanes that make it, and those continue when all of them
have returned. Without recursion this is one staged program; with recursion Python makes the recursive calls, so it
cannot be traced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import UsageError
from pcbatch.ir.analysis.callgraph import calls, recursive, static_depth
from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.analysis.def_use import kept
from pcbatch.ir.cfg import Call, CfgProgram
from pcbatch.ir.ops import Fail, Print
from pcbatch.ir.roles import rename_reads
from pcbatch.lowering.typing.jax_types import storage_type, to_storage
from pcbatch.options import Options
from pcbatch.runtime.local_strategy.counters import Tally, show
from pcbatch.runtime.local_strategy.function_plans import FunctionPlan, Planner, shown_name, type_of
from pcbatch.runtime.local_strategy.host import Host
from pcbatch.runtime.local_strategy.staged import Staged
from pcbatch.runtime.sharding.lane_sharding import Devices, trace_without_mesh
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.layout import PER_BLOCK
from pcbatch.runtime.vm.machine import final
from pcbatch.runtime.vm.raw_result import RawResult, is_tracing
from pcbatch.runtime.vm.status import Site, status_of

DEPTH_LIMIT = 10_000  # nested calls, where no other limit is set
DEPTH_FLOOR = 256  # the least of those, however large variables are
MEMORY_LIMIT = 2**31  # bytes of variables of open activations, where no other limit is set


@dataclass(slots=True)
class LocalExecutable:
    """A typed CFG program with the functions that run it."""

    program: CfgProgram
    options: Options
    planner: Planner = field(init=False)
    staged: Staged = field(init=False)
    on_host: frozenset[str] = field(init=False)  # functions that reach a recursive one
    jitted: Any = field(init=False)
    _hosts: dict[int, Host] = field(init=False, default_factory=dict)
    _finish: Any = field(init=False)

    def __post_init__(self) -> None:
        edges = calls(self.program)
        alive = reachable([self.program.entry], edges)
        cyclic = recursive(self.program) & alive
        below = {name: reachable([name], edges) for name in alive}
        self.on_host = frozenset(name for name in alive if below[name] & cyclic)
        self.planner = Planner(self.program)
        deepest = static_depth(self.program)
        wanted = self.options.max_depth
        limit = wanted if deepest is None or (wanted is not None and wanted < deepest) else None
        self.staged = Staged(self.planner, self._tally(jnp, limit))
        self.jitted = jax.jit(self._whole, static_argnames=("lanes",))
        self._finish = jax.jit(self._results, static_argnames=("lanes",))

    def _tally(self, xp: Any, max_depth: int | None) -> Tally:
        blocks = [(f, block) for f in self.program.functions for block in f.blocks]
        shown = {
            shown_name(f, v): storage_type(type_of(f.types, v)) for f, block in blocks for v in kept(block.terminator)
        }
        return Tally(
            xp,
            self.planner.blocks,
            self.options.max_steps,
            max_depth,
            self.options.stats,
            raises=any(isinstance(block.terminator, Fail) for _, block in blocks),
            prints=any(isinstance(op, Print) for _, block in blocks for op in block.ops),
            shown=tuple(shown.items()),
        )

    @property
    def params(self) -> tuple[str, ...]:
        """The names of the arguments."""
        return self.program.function(self.program.entry).params

    def run(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> RawResult:
        """Run all lanes to their end.

        Args:
            args: The arguments by parameter, [lanes, ...] each or unbatched.
            lanes: The number of lanes.
            mesh: Must be None.

        Raises:
            UsageError: The program is recursive and JAX is tracing (PCB411), or several devices were asked for.
        """
        traced = is_tracing(args)
        if traced or not self.on_host:
            self._check_traceable(mesh)
            whole = partial(self._whole, lanes=lanes)
            out: RawResult = trace_without_mesh(whole, args) if traced else self.jitted(args, lanes=lanes)
            return self.outcome(out, self.depth, lanes, mesh)
        _check_alone(mesh)
        plan, stored = self._start(args)
        limit = self.options.max_depth or self._deepest(lanes)
        results, counts = self._host(limit).run(plan, stored, lanes)
        counts = {k: jnp.asarray(v) for k, v in counts.items()}
        read: RawResult = self._finish(results, counts, lanes=lanes)
        return self.outcome(read, limit, lanes, mesh)

    def _host(self, limit: int) -> Host:
        if limit not in self._hosts:
            self._hosts[limit] = Host(self.staged, self._tally(np, limit), self.on_host)
        return self._hosts[limit]

    def _deepest(self, lanes: int) -> int:
        sizes = [1]
        for f in self.program.functions:
            if f.name in self.on_host:
                types = [storage_type(type_of(f.types, v)) for v in f.types]
                sizes.append(sum(t.size * np.dtype(t.dtype).itemsize for t in types))
        return min(DEPTH_LIMIT, max(DEPTH_FLOOR, (self.options.memory or MEMORY_LIMIT) // (max(sizes) * max(1, lanes))))

    def _start(self, args: Mapping[str, Any]) -> tuple[FunctionPlan, list[Any]]:
        plan = self.planner.entry(args)
        return plan, [to_storage(args[p], plan.type(p)) for p in plan.function.params]

    def _whole(self, args: Mapping[str, Any], lanes: int) -> RawResult:
        plan, stored = self._start(args)
        tally = self.staged.tally
        depth = None if tally.max_depth is None else jnp.int32(0)
        results, counts = self.staged.call(plan, stored, jnp.ones((lanes,), bool), tally.start(lanes), depth)
        return self._results(results, counts, lanes)

    def _results(self, results: tuple[Any, ...], counts: Values, lanes: int) -> RawResult:
        blocks = self.planner.blocks
        stop = counts.get("stop", jnp.full((lanes,), blocks, jnp.int32))
        status = status_of(stop, blocks)
        where = jnp.where(stop == blocks, -1, stop % (blocks + 1))
        shown = {name: counts[show(name)] for name, _ in self.staged.tally.shown}
        entry = self.program.function(self.program.entry)
        types = [type_of(entry.types, v) for v in entry.results]
        values = tuple(final(r, t, status) for r, t in zip(results, types, strict=True))
        totals = tuple(counts[key] for key in PER_BLOCK if key in counts)
        return RawResult(values, status, counts["trips"], totals, where, None, None, shown, 0)

    def lower(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> Any:
        """Return the `jax.stages.Lowered` of the whole run.

        Raises:
            UsageError: The program is recursive, which makes it many programs.
        """
        self._check_traceable(mesh)
        return self.jitted.lower(args, lanes=lanes)

    @property
    def depth(self) -> int:
        """The nested calls that a lane may make; 0: there is no limit."""
        return self.options.max_depth or 0

    def outcome(self, result: RawResult, depth: int, lanes: int, mesh: Devices) -> RawResult:
        """Return the raw result of a compiled run of `lower`, with the depth that it had."""
        return replace(result, depth=depth)

    def jaxpr(self, args: Mapping[str, Any], lanes: int, mesh: Devices = None) -> Any:
        """Return the jaxpr of the whole run.

        Raises:
            UsageError: The program is recursive.
        """
        self._check_traceable(mesh)
        return jax.make_jaxpr(partial(self._whole, lanes=lanes))(args)

    def where(self, pc: int, back: int | None = None) -> Site:
        """Return the point of the program at which a lane stopped, from its `RawResult.pc`."""
        blocks = [(function, block) for function in self.program.functions for block in function.blocks]
        if not 0 <= pc < len(blocks):
            return Site()
        function, block = blocks[pc]
        ops = sorted(block.ops, key=lambda op: not isinstance(op, Call))  # calls first
        locs = [loc for op in (*ops, block.terminator) if (loc := getattr(op, "loc", None)) is not None]
        named = rename_reads(block.terminator, lambda v: shown_name(function, v))
        return Site(locs[0] if locs else None, fail=named if isinstance(named, Fail) else None)

    def _check_traceable(self, mesh: Devices) -> None:
        """Refuse several devices, and programs that are not one."""
        _check_alone(mesh)
        if self.on_host:
            names = ", ".join(f"`{name}`" for name in sorted(recursive(self.program)))
            title = 'strategy "local" keeps recursion on the host, so a recursive function cannot be traced or lowered'
            help = 'use strategy="pc", or call the function outside `jax.jit` and other transformations'
            raise UsageError(Diagnostic("PCB411", title, notes=(f"recursive here: {names}",), helps=(help,)))


def needs_pc(what: str, *helps: str) -> UsageError:
    """Return the error of a feature that needs program counters.

    Lanes that wait for each other take no new inputs, are never between two trips, and leave no tape.
    """
    title = f'{what} needs program counters, and `strategy="local"` has none'
    return UsageError(Diagnostic("PCB415", title, helps=('use `strategy="pc"`', *helps)))


def _check_alone(mesh: Devices) -> None:
    if mesh is not None:
        title = '`strategy="local"` runs on one device'
        help = 'leave out `devices` and `mesh`, or use `strategy="pc"`'
        raise UsageError(Diagnostic("PCB415", title, helps=(help,)))
