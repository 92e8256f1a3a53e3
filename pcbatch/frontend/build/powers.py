"""Powers whose exponent is no literal: a negative power of an integer is a float in Python, so it ends the lane.

t = n ** k       ==>      branch is_power(n, k), holds, failing;  holds: t = checked_power(n, k)
"""

from __future__ import annotations

import gast

from pcbatch.data.functions import operators, python_numbers
from pcbatch.data.functions.python_numbers import NEGATIVE_POWER
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.source.resolve import is_builtin
from pcbatch.frontend.source.tree import Node, compare, constant, is_constant, supported
from pcbatch.ir.ops import LIMIT, Branch, Fail


def power_of(b: Builder, node: Node) -> tuple[Node, Node] | None:
    """Return the base and the exponent of a power whose exponent is no literal; None for any other node."""
    match node:
        case gast.BinOp(op=gast.Pow()):
            parts = node.left, node.right
        case gast.Call(args=[_, _], keywords=[]) if is_builtin(b.unit, node.func, "pow"):
            parts = node.args[0], node.args[1]
        case _:
            return None
    return None if is_number(parts[1]) or any(isinstance(part, gast.Starred) for part in parts) else parts


def is_number(node: Node) -> bool:
    """Return whether a node is a literal, which may have a sign."""
    return is_constant(node.operand if isinstance(node, gast.UnaryOp) else node)


def checked_power(b: Builder, node: Node, base: Node, exponent: Node) -> Node:
    """Compute a power of variables or literals after a test that ends the lane for a negative power of an integer."""
    holds, failing, cond = b.label(), b.label(), b.temp()
    b.prim(
        (cond,),
        supported(python_numbers.is_power, [base, exponent], node),
        shown=compare(exponent, gast.GtE(), constant(0, node), node),
    )
    b.end(Branch(cond, holds, failing, b.loc(node)))
    b.start(failing)
    b.end(Fail(LIMIT, LIMIT, (NEGATIVE_POWER,), b.loc(node)))
    b.start(holds)
    return supported(operators.checked_power, [base, exponent], node)
