"""Make primitives that raise whatever their operands are end the lane, if not every lane reaches them.

    if c:                         branch c, bb1, bb2
        y = xs[2]         ==>     bb1: fail IndexError("list index out of range")
                                  bb2: ...                                             (`xs` has one element)

What every lane reaches is a mistake, which is reported while compiling. Operands are read before the lane fails, so
that one without a value is what it fails for (`fail_unbound.py`).
"""

from __future__ import annotations

import traceback
from dataclasses import replace

from pcbatch.errors import NoAttribute, class_name
from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.cfg import Block, CfgProgram, Function
from pcbatch.ir.names import unused
from pcbatch.ir.ops import ERROR, RETURN, Branch, Expr, Fail, Jump, Prim, Return
from pcbatch.lowering.cfg_passes.simplify_cfg import drop_unreachable
from pcbatch.lowering.typing.inferred import Inferred, OpKey, branch_targets

RAISES = (IndexError, KeyError, ZeroDivisionError, ValueError, NoAttribute)  # others may be those of a tracer alone
OF_NONE = "'NoneType' object is not "  # in front of a TypeError of Python's, of None in place of a tracer
LIBRARIES = ("/jax/", "/jaxlib/", "/numpy/")  # what they raise is about types and shapes


def run(source: CfgProgram, split: CfgProgram, inferred: Inferred) -> CfgProgram:
    """Return `source` with a failure in place of each such primitive; `split` is what types were inferred for."""
    found: dict[str, dict[str, int]] = {}
    for (function, label, k), error in inferred.errors.items():
        if _raises_in_python(error) and not _is_sure(split.function(function), label, inferred):
            places = found.setdefault(function, {})
            places[label] = min(k, places.get(label, k))
    functions = [_failing(f, found.get(f.name, {}), inferred) for f in source.functions]
    return replace(source, functions=tuple(functions))


def _raises_in_python(error: Exception) -> bool:
    if type(error) not in RAISES and not (type(error) is TypeError and str(error).startswith(OF_NONE)):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and not any(part in frames[-1].filename for part in LIBRARIES)


def _is_sure(function: Function, label: str, inferred: Inferred) -> bool:
    """Whether every call of a function comes to a block, whatever its branches do."""

    def following(block: Block) -> tuple[str, ...]:
        match block.terminator:
            case Jump(target=target):
                return (target,)
            case Branch() as branch:
                cond = inferred.types.get((function.name, branch.cond))
                return (branch.on_true, branch.on_false) if cond is None else branch_targets(branch, cond)
            case Return() | Fail():
                return (RETURN,)

    edges = {block.label: following(block) for block in function.blocks} | {label: (), RETURN: ()}
    return RETURN not in reachable([function.blocks[0].label], edges)


def _failing(function: Function, places: dict[str, int], inferred: Inferred) -> Function:
    if not places:
        return function
    read = unused("operands", "_", function.types)
    blocks = [
        _cut(block, places[block.label], inferred.errors[_key(function, block, places)], read)
        if block.label in places
        else block
        for block in function.blocks
    ]
    return replace(function, blocks=drop_unreachable(tuple(blocks)), types={**function.types, read: None})


def _key(function: Function, block: Block, places: dict[str, int]) -> OpKey:
    return function.name, block.label, places[block.label]


def _cut(block: Block, k: int, error: Exception, read: str) -> Block:
    """The block up to one of its operations, whose operands are read into a variable."""
    op = block.ops[k]
    assert isinstance(op, Prim)
    ins = op.expr.ins
    operands = (Prim((read,), Expr(f"({', '.join(ins)},)", ins, lambda *_: True), op.loc),) if ins else ()
    text = str(error.args[0]) if len(error.args) == 1 and isinstance(error.args[0], str | int | float) else ""
    message = (text,) if text else ()
    failure = Fail(ERROR, class_name(error), message, op.loc)
    return replace(block, ops=(*block.ops[:k], *operands), terminator=failure)
