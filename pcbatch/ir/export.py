"""The export of programs to other tools: `to_json` for scripts, `to_dot` for Graphviz.

The JSON is complete (locations too, functions of expressions excepted) and stable: `format` changes with its
shape. In both, order is that of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.def_use import AnyBlock, AnyOp, AnyTerminator, may_return
from pcbatch.ir.forks import Fork, leaves
from pcbatch.ir.message import Field
from pcbatch.ir.op_text import print_op
from pcbatch.ir.ops import RETURN, Branch, Expr, Jump, Return
from pcbatch.ir.printer import print_terminator
from pcbatch.ir.stack import Edge, PushJump, StackBlock, StackProgram, Var
from pcbatch.ir.task_text import block_header, declared_names, print_task_op, print_task_terminator
from pcbatch.ir.tasks import (
    Finish,
    Give,
    Start,
    Sync,
    TaskBlock,
    TaskJump,
    TaskOp,
    TaskProgram,
    TaskTerminator,
    Way,
    spawns,
)
from pcbatch.ir.types import ArrayType

FORMAT = 3


def to_json(program: CfgProgram | StackProgram | TaskProgram) -> dict[str, Any]:
    """Return a program as dicts, lists, strings and numbers, ready for `json.dumps`."""
    if isinstance(program, CfgProgram):
        functions = [_function(function) for function in program.functions]
        return {"format": FORMAT, "stage": "cfg", "entry": program.entry, "functions": functions}
    if isinstance(program, TaskProgram):
        return _tasks(program)
    return {
        "format": FORMAT,
        "stage": "stack",
        "entry": program.entry,
        "params": list(program.params),
        "results": list(program.results),
        "vars": [_var(name, var) for name, var in program.vars.items()],
        "prologue": [_node(op) for op in program.prologue],
        "blocks": [_block(block) for block in program.blocks],
    }


def _tasks(program: TaskProgram) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "stage": "tasks",
        "entry": program.entry,
        "params": list(program.params),
        "results": list(program.results),
        "constants": list(program.constants),
        "shared": list(program.shared),
        "sums": sorted(program.sums),
        "exact": program.exact,
        "vars": [{"name": name, "type": _type(type_)} for name, type_ in program.types.items()],
        "prologue": [_node(op) for op in program.prologue],
        "blocks": [_task_block(block) for block in program.blocks],
    }


def _task_block(block: TaskBlock) -> dict[str, Any]:
    return {
        "label": block.label,
        "function": block.function,
        "params": list(block.params),
        "joins": block.joins,
        "open": block.open,
        "ops": [_node(op) for op in block.ops],
        "terminator": _node(block.terminator),
    }


def _function(function: Function) -> dict[str, Any]:
    return {
        "name": function.name,
        "params": list(function.params),
        "results": list(function.results),
        "vars": [{"name": name, "type": _type(type_)} for name, type_ in function.types.items()],
        "blocks": [_block(block) for block in function.blocks],
        "loc": _loc(function.loc),
    }


def _block(block: AnyBlock) -> dict[str, Any]:
    ops, terminator = [_node(op) for op in block.ops], _node(block.terminator)
    source = {"function": block.function} if isinstance(block, StackBlock) else {}
    return {"label": block.label, **source, "ops": ops, "terminator": terminator}


def _node(node: AnyOp | AnyTerminator | TaskOp | TaskTerminator | Way) -> dict[str, Any]:
    """`op` is the lower-case class name; the rest are the fields of the dataclass."""
    out: dict[str, Any] = {"op": type(node).__name__.lower()}
    for name in node.__dataclass_fields__:
        out[name] = _value(getattr(node, name))
    return out


def _value(value: str | bool | tuple[Any, ...] | Expr | Edge | TaskTerminator | Way | Loc | None) -> Any:
    match value:
        case Fork() | Jump() | PushJump() | Return() | TaskJump() | Sync() | Finish() | Start() | Give():
            return _node(value)
        case Expr():
            return {"text": value.text, "ins": list(value.ins)}
        case Loc():
            return _loc(value)
        case tuple():
            return [_field(item) if isinstance(item, Field) else _value(item) for item in value]
        case _:
            return value


def _field(field: Field) -> dict[str, Any]:
    return {"var": field.var, "conversion": field.conversion, "spec": _value(field.spec)}


def _var(name: str, var: Var) -> dict[str, Any]:
    return {"name": name, "type": _type(var.type), "storage": var.storage.value if var.storage else None}


def _type(type_: ArrayType | None) -> dict[str, Any] | None:
    return None if type_ is None else {"dtype": type_.dtype, "shape": list(type_.shape), "weak": type_.weak}


def _loc(loc: Loc | None) -> dict[str, Any] | None:
    return None if loc is None else asdict(loc)


def to_dot(program: CfgProgram | StackProgram | TaskProgram) -> str:
    """Return the control flow as a Graphviz digraph: a node per block, edges labelled T, F, call and ret.

    In a task program, edges of `sync` are dashed, and those to blocks at which spawned tasks begin are dotted.
    """
    lines = ["digraph pcbatch {", '  node [shape=box, fontname="monospace"];']
    if isinstance(program, CfgProgram):
        for i, function in enumerate(program.functions):
            lines += [f"  subgraph cluster_{i} {{", f"    label={_quote('@' + function.name)};"]
            prefix = f"{function.name}:"
            lines += [f"  {line}" for line in _graph(function.blocks, function.types, prefix, function.blocks[:1])]
            lines.append("  }")
        lines += _call_edges(program)
    elif isinstance(program, TaskProgram):
        lines += _prologue(program.prologue, program.types, program.entry)
        lines += _task_graph(program)
    else:
        entry = [block for block in program.blocks if block.label == program.entry]
        lines += _prologue(program.prologue, program.vars, program.entry)
        lines += _graph(program.blocks, program.vars, "", entry)
    return "\n".join([*lines, "}"]) + "\n"


def _prologue(ops: Iterable[AnyOp], declared: Mapping[str, object], entry: str) -> Iterator[str]:
    lines = [print_op(op, declared) for op in ops]
    if lines:
        yield f"  {_quote('prologue')} [label={_label(['prologue:', *lines])}, style=dashed];"
        yield f"  {_quote('prologue')} -> {_quote(entry)} [style=dashed];"


def _graph(
    blocks: Iterable[AnyBlock], declared: Mapping[str, object], prefix: str, entry: Iterable[AnyBlock]
) -> Iterator[str]:
    bold = {block.label for block in entry}
    for block in blocks:
        lines = [f"{block.label}:", *(print_op(op, declared) for op in block.ops), print_terminator(block.terminator)]
        style = ", style=bold" if block.label in bold else ""
        periphery = ", peripheries=2" if may_return(block.terminator) else ""
        yield f"  {_quote(prefix + block.label)} [label={_label(lines)}{style}{periphery}];"
    for block in blocks:
        for target, label in _edges(block.terminator):
            text = f" [label={_quote(label)}{', style=dashed' if label.endswith('ret') else ''}]" if label else ""
            yield f"  {_quote(prefix + block.label)} -> {_quote(prefix + target)}{text};"


def _edges(terminator: AnyTerminator, path: str = "") -> list[tuple[str, str]]:
    """The target and the label of each edge: the outcomes of conditions, a call, its return."""
    match terminator:
        case Jump(target=target):
            return [(target, path)]
        case Branch():
            both = [(terminator.on_true, "T"), (terminator.on_false, "F")]
            return [(target, label) for target, label in both if target != RETURN]
        case Fork():
            return _edges(terminator.on_true, path + "T") + _edges(terminator.on_false, path + "F")
        case PushJump(target=target, ret=ret):
            return [(target, f"{path} call".strip()), (ret, f"{path} ret".strip())]
        case _:
            return []


def _task_graph(program: TaskProgram) -> Iterator[str]:
    declared = declared_names(program)
    for block in program.blocks:
        lines = [f"{block_header(block)}:", *(print_task_op(op, declared) for op in block.ops)]
        lines.append(print_task_terminator(block.terminator))
        style = ", style=bold" if block.label == program.entry else ""
        ends = any(isinstance(leaf, Finish) for leaf in leaves(block.terminator))
        yield f"  {_quote(block.label)} [label={_label(lines)}{style}{', peripheries=2' if ends else ''}];"
    for block in program.blocks:
        for target, label in _task_edges(block.terminator):
            text = f" [label={_quote(label)}{', style=dashed' if label.endswith('sync') else ''}]" if label else ""
            yield f"  {_quote(block.label)} -> {_quote(target)}{text};"
        begun = (way.label for op in spawns(block) for way in leaves(op.way) if isinstance(way, Start))
        for target in dict.fromkeys(begun):
            yield f"  {_quote(block.label)} -> {_quote(target)} [label={_quote('spawn')}, style=dotted];"


def _task_edges(terminator: TaskTerminator, path: str = "") -> list[tuple[str, str]]:
    match terminator:
        case TaskJump(target=target):
            return [(target, path)]
        case Sync(target=target):
            return [(target, f"{path} sync".strip())]
        case Fork():
            return _task_edges(terminator.on_true, path + "T") + _task_edges(terminator.on_false, path + "F")
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
