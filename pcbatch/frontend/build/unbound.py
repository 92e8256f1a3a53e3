"""Reads of variables that may have no value, in the body of a `try`, whose handlers catch what such a read raises.

    try: y = v + 1           ==>       branch v_is_set, next, other;  other: code = UnboundLocalError, to the handlers
                                       next: code, t = attempt(v + 1) ...

Everywhere else a later pass adds the test, whose failure ends the lane (`lowering/cfg_passes/fail_unbound.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.source.tree import constant
from pcbatch.ir.cfg import Function, Op
from pcbatch.ir.names import unused
from pcbatch.ir.ops import Expr, Prim
from pcbatch.ir.roles import writes


def keep_flags(b: Builder) -> None:
    """Build flags for variables that may have no value, in a function that catches what their reads raise."""
    if not b.handlers and not any(isinstance(part, gast.Try | gast.With) for part in gast.walk(b.unit.node)):
        return
    start = b.unit.body[0]
    for name in sorted(b.unbound - {b.result}):
        flag = unused(f"{name.replace('.', '_')}_is_set", "_", b.variables | b.unit.names)
        b.variables |= {flag}
        b.is_set[name] = flag
        b.plain_prim((flag,), constant(False, start), at=start)


def with_flags(function: Function, flags: Mapping[str, str]) -> Function:
    """Return a function that sets the flag of a variable wherever it assigns the variable."""
    if not flags:
        return function

    def and_set(op: Op) -> list[Op]:
        return [op, *(_set(flags[name]) for name in writes(op) if name in flags)]

    blocks = (replace(block, ops=tuple(new for op in block.ops for new in and_set(op))) for block in function.blocks)
    return replace(function, blocks=tuple(blocks))


def _set(flag: str) -> Prim:
    return Prim((flag,), Expr("True", (), lambda: True))
