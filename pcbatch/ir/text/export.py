"""The export of programs to other tools: `to_json` for scripts, `to_dot` for Graphviz.

The JSON is complete (locations too, functions of expressions excepted) and stable: `format` changes with its
shape. In both, order is that of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.analysis.def_use import AnyBlock, may_return
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function
from pcbatch.ir.forks import Fork, leaves
from pcbatch.ir.message import Field
from pcbatch.ir.ops import RETURN, Branch, Expr, Jump
from pcbatch.ir.stack import PushJump, StackBlock, StackProgram, Var
from pcbatch.ir.tasks import Finish, Sync, TaskBlock, TaskJump, TaskProgram, spawns, starts
from pcbatch.ir.text.printer import block_header, declared_names, prologue
from pcbatch.ir.text.syntax import node_text
from pcbatch.ir.types import ArrayType

FORMAT = 3
_ENTRIES: Mapping[type, str] = {  # those of what is no operation, in order; `types` go by the name `vars`
    CfgProgram: "entry functions",
    StackProgram: "entry params results vars prologue blocks",
    TaskProgram: "entry params results constants shared sums exact types prologue blocks",
    Function: "name params results types blocks loc",
    Block: "label ops terminator",
    StackBlock: "label function ops terminator",
    TaskBlock: "label function params joins open ops terminator",
    Expr: "text ins",
    Field: "var conversion spec",
    ArrayType: "dtype shape weak",
    Var: "type storage",
    Loc: "file line col end_line end_col",
}


def to_json(program: CfgProgram | StackProgram | TaskProgram) -> dict[str, Any]:
    """Return a program as dicts, lists, strings and numbers, ready for `json.dumps`."""
    stage = {CfgProgram: "cfg", StackProgram: "stack", TaskProgram: "tasks"}[type(program)]
    return {"format": FORMAT, "stage": stage, **_entries(program)}


def _entries(node: Any) -> dict[str, Any]:
    """The entries of an object; those of an operation are its fields, behind its class name in lower case."""
    names = _ENTRIES.get(type(node))
    start = {} if names else {"op": type(node).__name__.lower()}
    fields = names.split() if names else node.__dataclass_fields__
    return start | {"vars" if name == "types" else name: _value(getattr(node, name)) for name in fields}


def _value(value: Any) -> Any:
    match value:
        case Mapping():
            return [
                {"name": k, **(_entries(v) if isinstance(v, Var) else {"type": _value(v)})} for k, v in value.items()
            ]
        case tuple():
            return [_value(item) for item in value]
        case frozenset():
            return sorted(value)
        case Enum():
            return value.value
        case _:
            return _entries(value) if is_dataclass(value) else value


def to_dot(program: CfgProgram | StackProgram | TaskProgram) -> str:
    """Return the control flow as a Graphviz digraph: a node per block, edges labelled T, F, call and ret.

    In a task program, edges of `sync` are dashed, and those to blocks at which spawned tasks begin are dotted.
    """
    lines = ["digraph pcbatch {", '  node [shape=box, fontname="monospace"];']
    if isinstance(program, CfgProgram):
        for i, function in enumerate(program.functions):
            lines += [f"  subgraph cluster_{i} {{", f"    label={_quote('@' + function.name)};"]
            entry = function.blocks[0].label if function.blocks else ""
            lines += [f"  {line}" for line in _graph(function.blocks, function.types, f"{function.name}:", entry)]
            lines.append("  }")
        lines += _call_edges(program)
    else:
        declared = declared_names(program)
        if first := [line.strip() for line in prologue(program.prologue, declared)]:
            lines.append(f"  {_quote('prologue')} [label={_label(first)}, style=dashed];")
            lines.append(f"  {_quote('prologue')} -> {_quote(program.entry)} [style=dashed];")
        lines += _graph(program.blocks, declared, "", program.entry)
    return "\n".join([*lines, "}"]) + "\n"


def _graph(
    blocks: Iterable[AnyBlock | TaskBlock], declared: Mapping[str, object], prefix: str, entry: str
) -> Iterator[str]:
    for block in blocks:
        lines = [block_header(block), *(node_text(node, declared) for node in (*block.ops, block.terminator))]
        style = ", style=bold" if block.label == entry else ""
        periphery = ", peripheries=2" if _ends(block) else ""
        yield f"  {_quote(prefix + block.label)} [label={_label(lines)}{style}{periphery}];"
    for block in blocks:
        for target, label in _edges(block.terminator):
            dashed = ", style=dashed" if label.endswith(("ret", "sync")) else ""
            text = f" [label={_quote(label)}{dashed}]" if label else ""
            yield f"  {_quote(prefix + block.label)} -> {_quote(prefix + target)}{text};"
        begun = (label for op in spawns(block) for label in starts(op.way)) if isinstance(block, TaskBlock) else ()
        for target in dict.fromkeys(begun):
            yield f"  {_quote(block.label)} -> {_quote(target)} [label={_quote('spawn')}, style=dotted];"


def _ends(block: AnyBlock | TaskBlock) -> bool:
    if isinstance(block, TaskBlock):
        return any(isinstance(leaf, Finish) for leaf in leaves(block.terminator))
    return may_return(block.terminator)


def _edges(terminator: Any, path: str = "") -> list[tuple[str, str]]:
    """The target and the label of each edge: the outcomes of conditions, a call, its return, a `sync`."""
    match terminator:
        case Jump(target=target) | TaskJump(target=target):
            return [(target, path)]
        case Sync(target=target):
            return [(target, f"{path} sync".strip())]
        case Branch():
            both = [(terminator.on_true, "T"), (terminator.on_false, "F")]
            return [(target, label) for target, label in both if target != RETURN]
        case Fork():
            return _edges(terminator.on_true, path + "T") + _edges(terminator.on_false, path + "F")
        case PushJump(target=target, ret=ret):
            return [(target, f"{path} call".strip()), (ret, f"{path} ret".strip())]
        case _:
            return []


def _call_edges(program: CfgProgram) -> Iterator[str]:
    entries = {f.name: f"{f.name}:{f.blocks[0].label}" for f in program.functions if f.blocks}
    for function in program.functions:
        for block in function.blocks:
            for callee in dict.fromkeys(op.func for op in block.ops if isinstance(op, Call) and op.func in entries):
                start = _quote(f"{function.name}:{block.label}")
                yield f"  {start} -> {_quote(entries[callee])} [label={_quote('call')}, style=dotted];"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _quote(text: str) -> str:
    return f'"{_escape(text)}"'


def _label(lines: Iterable[str]) -> str:
    r"""The lines of a node; `\l` ends a line and aligns it left."""
    return '"' + "".join(_escape(line) + "\\l" for line in lines) + '"'
