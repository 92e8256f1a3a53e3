"""Give every independent live range of a variable its own name.

before:  x = { 0 }; y = { x + 1 }; x = { 0.5 }; ...      after:  x = { 0 }; y = { x + 1 }; x.v1 = { 0.5 }; ...

Two definitions share a name exactly when some use may see both (webs: union of reaching definitions). The name
then has one type, so `x = 0` followed by `x = x * 0.5` in straight line keeps both types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pcbatch.ir.cfg import CfgProgram, Function, Op
from pcbatch.ir.dataflow import forward
from pcbatch.ir.liveness import live_in
from pcbatch.ir.rename import rename_reads, rename_terminator, rename_writes
from pcbatch.ir.walk import may_return, reads, terminator_reads, writes

Def = tuple[str, int, int]  # block label, operation index, position among its writes; index -1: parameter
Reaching = dict[str, frozenset[Def]]


def run(program: CfgProgram) -> CfgProgram:
    """Split the live ranges of every function."""
    return replace(program, functions=tuple(_split(function) for function in program.functions))


def original_name(name: str) -> str:
    """The user's name of a variable that this pass renamed."""
    return ".".join(part for part in name.split(".") if not (part[0] == "v" and part[1:].isdigit()))


class _Webs:
    """Union-find over definitions."""

    def __init__(self) -> None:
        self._parent: dict[Def, Def] = {}

    def find(self, d: Def) -> Def:
        path = []
        while (parent := self._parent.get(d, d)) != d:
            path.append(d)
            d = parent
        self._parent.update(dict.fromkeys(path, d))  # a shorter way for the next time
        return d

    def union(self, defs: frozenset[Def]) -> None:
        ordered = sorted(defs)
        for other in ordered[1:]:
            a, b = self.find(ordered[0]), self.find(other)
            self._parent[max(a, b)] = min(a, b)


def _split(function: Function) -> Function:
    entry = function.blocks[0].label
    start: Reaching = {p: frozenset({(entry, -1, k)}) for k, p in enumerate(function.params)}
    reaching = _solve(function, start)
    webs = _Webs()
    names: dict[Def, str] = {d: v for v, ds in start.items() for d in ds}
    uses: dict[tuple[str, int, str], frozenset[Def]] = {}
    for block in function.blocks:
        env = dict(reaching[block.label])
        for k, op in enumerate(block.ops):
            for v in reads(op):
                uses[block.label, k, v] = env.get(v, frozenset())
            for j, v in enumerate(writes(op)):
                names[block.label, k, j] = v
                env[v] = frozenset({(block.label, k, j)})
        read = terminator_reads(block.terminator)
        read += function.results if may_return(block.terminator) else ()
        for v in read:
            uses[block.label, len(block.ops), v] = env.get(v, frozenset())
    for defs in uses.values():
        webs.union(defs)
    _keep_together(function, names, webs)
    return _rename(function, uses, webs, _name_webs(function, names, webs))


def _keep_together(function: Function, names: dict[Def, str], webs: _Webs) -> None:
    """Results keep their names: all their definitions are one web."""
    for result in function.results:
        webs.union(frozenset(d for d, v in names.items() if v == result))


def _solve(function: Function, start: Reaching) -> Mapping[str, Reaching]:
    """The definitions that reach the top of each block, of variables that are read from there on."""
    live = live_in(function)
    entry = function.blocks[0].label
    gen = {
        b.label: {v: frozenset({(b.label, k, j)}) for k, op in enumerate(b.ops) for j, v in enumerate(writes(op))}
        for b in function.blocks
    }

    def join(label: str, values: list[Reaching]) -> Reaching:
        values = [start, *values] if label == entry else values
        if len(values) == 1:
            return {v: values[0][v] for v in live[label] & values[0].keys()}
        merged: Reaching = {}
        for v in live[label]:
            if found := [value[v] for value in values if v in value]:
                merged[v] = found[0].union(*found[1:])
        return merged

    nothing: Reaching = {}
    return forward(
        function.blocks, join=join, transfer=lambda label, before: {**before, **gen[label]}, start=nothing
    ).entering


def _name_webs(function: Function, names: dict[Def, str], webs: _Webs) -> dict[Def, str]:
    out: dict[Def, str] = {}
    seen: dict[str, int] = {}
    order = {block.label: k for k, block in enumerate(function.blocks)}
    # Parameters first: they keep their names.
    for d in sorted(names, key=lambda d: (d[1] >= 0, order[d[0]], d[1], d[2])):
        root, name = webs.find(d), names[d]
        if root not in out:
            count = seen.get(name, 0)
            out[root] = name if count == 0 else f"{name}.v{count}"
            seen[name] = count + 1
    return out


def _rename(
    function: Function, uses: dict[tuple[str, int, str], frozenset[Def]], webs: _Webs, web_names: dict[Def, str]
) -> Function:
    def used(label: str, k: int, v: str) -> str:
        defs = uses[label, k, v]
        return web_names[webs.find(min(defs))] if defs else v

    blocks = []
    for block in function.blocks:
        ops: list[Op] = []
        for k, op in enumerate(block.ops):
            new = rename_reads(op, lambda v, k=k, label=block.label: used(label, k, v))  # type: ignore[misc]
            fresh = iter([web_names[webs.find((block.label, k, j))] for j in range(len(writes(op)))])
            ops.append(rename_writes(new, lambda _, fresh=fresh: next(fresh)))  # type: ignore[misc]
        end = len(block.ops)
        terminator = rename_terminator(
            block.terminator,
            lambda v, end=end, label=block.label: used(label, end, v),  # type: ignore[misc]
        )
        blocks.append(replace(block, ops=tuple(ops), terminator=terminator))
    # A read that no definition reaches keeps its name; the checks report it as unbound.
    unbound = {v: None for (_, _, v), defs in uses.items() if not defs}
    types = dict.fromkeys(web_names.values()) | unbound | dict.fromkeys(function.params + function.results)
    return replace(function, blocks=tuple(blocks), types=types)
