"""Refusal of helpers that draw random numbers while they are traced: all lanes and iterations would share the numbers.

A draw changes the state of a generator, so the states before and after inference say whether there was one. Only then
are the primitives traced again, one by one, with a profiling function that notes which functions run.
"""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from pcbatch.diagnostics.impure_calls import GENERATORS, key_helps
from pcbatch.errors import Refusal
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.ops import Prim
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.trace import Traced, trace


def states(program: CfgProgram) -> list[object]:
    """Return the states of the global generators, and of those that are globals of the program's modules."""
    own = [_state(value) for space in _namespaces(program) for value in space.values() if isinstance(value, GENERATORS)]
    return [random.getstate(), pickle.dumps(np.random.get_state(legacy=False)), *own]


def _state(generator: Any) -> object:
    if isinstance(generator, random.Random):
        return generator.getstate()
    state = generator.bit_generator.state if isinstance(generator, np.random.Generator) else generator.get_state()
    return pickle.dumps(state)  # states hold arrays, which `==` does not compare


def _namespaces(program: CfgProgram) -> Iterable[Mapping[str, Any]]:
    prims = (op for f in program.functions for op in f.ops if isinstance(op, Prim))
    spaces = (getattr(op.expr.fn, "__globals__", None) for op in prims)
    return {id(space): space for space in spaces if space is not None}.values()


def watching(program: CfgProgram) -> Callable[..., Traced]:
    """Return a `trace` that raises Refusal for a primitive in which some function draws."""

    def traced(
        fn: Callable[..., Any], ins: Sequence[Abstract], results: int, written: Callable[..., Any] | None = None
    ) -> Traced:
        before = states(program)
        seen: dict[CodeType, Mapping[str, Any]] = {}
        result = _profiled(lambda: trace(fn, ins, results, written), seen)
        if states(program) != before:
            for code, space in seen.items():  # if none of them draws, another thread has drawn
                if any(_mentions(code, space)):
                    raise _refusal(code)
        return result

    return traced


def _profiled(run: Callable[[], Traced], seen: dict[CodeType, Mapping[str, Any]]) -> Traced:
    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            seen[frame.f_code] = frame.f_globals

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return run()
    finally:
        sys.setprofile(before)


def _mentions(code: CodeType, space: Mapping[str, Any]) -> Iterator[bool]:
    """Yield, for each name in a function's code, whether it is a generator, or a module or function that draws."""
    for name in code.co_names:
        value = space.get(name)
        yield value in (random, np.random) if type(value) is type(random) else isinstance(value, GENERATORS)
        yield value is np and "random" in code.co_names
        # `from random import gauss`: a bound method of the generator of the module
        yield callable(value) and isinstance(getattr(value, "__self__", None), GENERATORS)


def _refusal(code: CodeType) -> Refusal:
    title = f"`{code.co_name}` draws random numbers once, while compiling: all lanes and iterations would share them"
    note = f"it is at {code.co_filename}:{code.co_firstlineno}"
    return Refusal("PCB318", title, note, helps=key_helps(""))
