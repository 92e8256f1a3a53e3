"""Give every independent live range of a variable its own name.

before:  x = { 0 }; y = { x + 1 }; x = { 0.5 }; ...      after:  x = { 0 }; y = { x + 1 }; x.v1 = { 0.5 }; ...

Two definitions share a name exactly when some use may see both: the names are the webs of reaching definitions that
register allocators color (Muchnick, "Advanced compiler design and implementation", 1997, chapter 16). Each name then
has one type, so that `x = 0` followed by `x = x * 0.5` in straight line keeps both types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pcbatch.ir.analysis.dataflow import forward
from pcbatch.ir.analysis.def_use import may_return, successors, terminator_reads
from pcbatch.ir.analysis.liveness import live_in
from pcbatch.ir.analysis.union_find import UnionFind
from pcbatch.ir.cfg import Block, CfgProgram, Function, Op
from pcbatch.ir.roles import reads, rename_reads, rename_writes, writes

Def = tuple[str, int, int]  # block label, operation index, position among its writes; index -1: parameter
Node = Def | tuple[str, str]  # or a block and a variable at its top


def run(program: CfgProgram) -> CfgProgram:
    """Split the live ranges of every function."""
    return replace(program, functions=tuple(_split(function) for function in program.functions))


def original_name(name: str) -> str:
    """Return the user's name of a variable that this pass renamed."""
    return ".".join(part for part in name.split(".") if not (part[0] == "v" and part[1:].isdigit()))


def _split(function: Function) -> Function:
    start = {p: (function.blocks[0].label, -1, k) for k, p in enumerate(function.params)}
    last = {block.label: _definitions(block) for block in function.blocks}
    live, reached = live_in(function), _reached(function, last)
    names: dict[Def, str] = {d: v for v, d in start.items()}
    uses: dict[tuple[str, int, str], Node | None] = {}
    webs = UnionFind[Node]()  # and the variables at the tops of blocks stand for what reaches them
    for block in function.blocks:
        env: dict[str, Node] = {v: (block.label, v) for v in reached[block.label]}
        for k, op in enumerate(block.ops):
            for v in reads(op):
                uses[block.label, k, v] = env.get(v)
            for j, v in enumerate(writes(op)):
                names[block.label, k, j] = v
                env[v] = (block.label, k, j)
        read = terminator_reads(block.terminator)
        read += function.results if may_return(block.terminator) else ()
        for v in read:
            uses[block.label, len(block.ops), v] = env.get(v)
        for label in successors(block.terminator):  # a variable live there has a use that all these definitions reach
            for v in live[label] & env.keys():
                webs.union([(label, v), env[v]])
    for v in live[function.blocks[0].label] & start.keys():
        webs.union([(function.blocks[0].label, v), start[v]])
    # Callers read results by name, whichever definition a path ends with.
    _keep_together(function, names, webs)
    return _rename(function, uses, webs, _name_webs(function, names, webs))


def _definitions(block: Block) -> dict[str, Def]:
    """The last definition of every variable that the block writes."""
    return {v: (block.label, k, j) for k, op in enumerate(block.ops) for j, v in enumerate(writes(op))}


def _keep_together(function: Function, names: dict[Def, str], webs: UnionFind[Node]) -> None:
    """Unite all definitions of each result, so that results keep their names."""
    definitions: dict[str, list[Def]] = {result: [] for result in function.results}
    for d, v in names.items():
        if v in definitions:
            definitions[v].append(d)
    for defs in definitions.values():
        if defs:
            webs.union(defs)


def _reached(function: Function, last: Mapping[str, Mapping[str, Def]]) -> Mapping[str, frozenset[str]]:
    """The variables of which some definition reaches the top of each block, if they are read from there on."""
    live = live_in(function)
    entry, params = function.blocks[0].label, frozenset(function.params)
    written = {label: frozenset(names) for label, names in last.items()}
    return forward(
        function.blocks,
        join=lambda label, values: live[label] & frozenset().union(params if label == entry else (), *values),
        transfer=lambda label, before: before | written[label],
        start=frozenset[str](),
    ).entering


def _name_webs(function: Function, names: dict[Def, str], webs: UnionFind[Node]) -> dict[Node, str]:
    out: dict[Node, str] = {}
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
    function: Function,
    uses: Mapping[tuple[str, int, str], Node | None],
    webs: UnionFind[Node],
    web_names: Mapping[Node, str],
) -> Function:
    def used(label: str, k: int, v: str) -> str:
        node = uses[label, k, v]
        return v if node is None else web_names[webs.find(node)]

    blocks = []
    for block in function.blocks:
        ops: list[Op] = []
        for k, op in enumerate(block.ops):
            new = rename_reads(op, lambda v, k=k, label=block.label: used(label, k, v))  # type: ignore[misc]
            fresh = iter([web_names[webs.find((block.label, k, j))] for j in range(len(writes(op)))])
            ops.append(rename_writes(new, lambda _, fresh=fresh: next(fresh)))  # type: ignore[misc]
        end = len(block.ops)
        terminator = rename_reads(
            block.terminator,
            lambda v, end=end, label=block.label: used(label, end, v),  # type: ignore[misc]
        )
        blocks.append(replace(block, ops=tuple(ops), terminator=terminator))
    # A read that no definition reaches keeps its name; the checks report it as unbound.
    unbound = {v: None for (_, _, v), node in uses.items() if node is None}
    types = dict.fromkeys(web_names.values()) | unbound | dict.fromkeys(function.params + function.results)
    return replace(function, blocks=tuple(blocks), types=types)
