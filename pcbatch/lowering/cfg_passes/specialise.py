"""Have one function for each tuple of shapes of its arguments, where calls give it arrays of several shapes.

before:  func @fft(x): even = call @fft(t); ...     after:  func @fft(x): even = call @fft.shape2(t); ...
                                                            func @fft.shape2(x): ...

Inference finds the functions and the targets of the calls. A recursion over halves ends, as a condition on a shape is
known in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pcbatch.ir.analysis.callgraph import without_uncalled
from pcbatch.ir.cfg import Block, Call, CfgProgram
from pcbatch.lowering.typing import infer
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.inferred import Inferred
from pcbatch.lowering.typing.instances import any_instance, base_of


def run(source: CfgProgram, cfg: CfgProgram, args: Mapping[str, Abstract], inferred: Inferred) -> CfgProgram:
    """Return a program with a function for each tuple of shapes of the arguments of functions that are called with
    several; as it is, if that are none, or too many. `cfg` is the program with live ranges split."""
    conflicts = (
        function
        for (function, name), conflict in inferred.conflicts.items()
        if conflict.kind == "shape" and name in cfg.function(function).params
    )
    # Those that have instances already are looked at again, so that a call finds the right one in the end.
    functions = frozenset(map(base_of, (*conflicts, *(f.name for f in source.functions if f.name != base_of(f.name)))))
    found = infer.instances(cfg, args, functions) if functions else None
    if found is None:
        return source
    others = [f for f in source.functions if f.name == base_of(f.name)]
    known = {f.name: f for f in source.functions}
    names = {**{base: base for base in functions}, **found.names}
    copies = [replace(any_instance(known, base), name=name) for name, base in names.items() if name not in known]
    copies += [known[name] for name, base in names.items() if name in known and name != base]

    def called(name: str) -> str:
        """The function of a call of which no types are known yet."""
        return base_of(name) if base_of(name) in functions and name not in names else name

    def block(function: str, old: Block) -> Block:
        ops = (
            replace(op, func=found.targets.get((function, old.label, k), called(op.func)))
            if isinstance(op, Call)
            else op
            for k, op in enumerate(old.ops)
        )
        return replace(old, ops=tuple(ops))

    new = [replace(f, blocks=tuple(block(f.name, b) for b in f.blocks)) for f in (*others, *copies)]
    return without_uncalled(replace(source, functions=tuple(new)))
