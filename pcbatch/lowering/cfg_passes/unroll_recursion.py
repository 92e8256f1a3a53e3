"""Unroll recursion: a small function that calls itself holds copies of its body in place of these calls, once.

before:  func @fib(n): t = { n < 2 }; branch t, bb1, bb2     after, of each call:  fib.n = a; fib.t = { fib.n < 2 }
         bb1: r = n; return                                                        branch fib.t, bb4, bb5
         bb2: a = { n - 1 }; b = { n - 2 }                                  bb4: fib.r = fib.n; jump bb6
              r = call @fib(a); s = call @fib(b)                            bb5: ... call @fib, call @fib ...
              r = { r + s }; return                                         bb6: r = fib.r

For lanes that run one after the other: half of the frames, and of the jumps to a callee and back. Lanes together meet
less often in two copies of a body, and lose by it (docs/users/performance.md). After Cocktailer (OSDI 2023), which
unrolls recursive calls into the graph of a kernel.
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir.analysis.callgraph import sccs
from pcbatch.ir.analysis.loops import loops
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.lowering.analysis.cost import op_cost
from pcbatch.lowering.cfg_passes.inline import Inliner

MOST_CALLS = 4  # of itself
MOST_OPS = 96  # operations in all copies
MOST_COST = 256.0  # of a body, per lane, about one arithmetic operation each


def run(program: CfgProgram) -> CfgProgram:
    """Unroll every function that calls itself, and is not part of a larger circle, by one level."""
    alone = {group[0] for group in sccs(program) if len(group) == 1}
    functions = tuple(_unrolled(f) if f.name in alone and _is_small(f) else f for f in program.functions)
    return replace(program, functions=functions)


def _is_small(function: Function) -> bool:
    ops = [*function.ops]
    own = [op for op in ops if isinstance(op, Call) and op.func == function.name]
    others = [op for op in ops if not isinstance(op, Call)]
    if not 1 <= len(own) <= MOST_CALLS or len(own) * len(ops) > MOST_OPS or loops(function):
        return False
    return sum(op_cost(op, function.types) for op in others) <= MOST_COST


def _unrolled(function: Function) -> Function:
    """The function with a copy of its body in place of each of its calls of itself."""
    name, inner = function.name, f"{function.name}, inside"  # of the calls in the copies, which stay
    unrolled = Inliner(function, {name: _calling(function, name, inner)}).run()
    return _calling(unrolled, inner, name)


def _calling(function: Function, old: str, new: str) -> Function:
    """The function with calls of another one in place of those of `old`."""
    blocks = tuple(
        replace(
            block,
            ops=tuple(replace(op, func=new) if isinstance(op, Call) and op.func == old else op for op in block.ops),
        )
        for block in function.blocks
    )
    return replace(function, blocks=blocks)
