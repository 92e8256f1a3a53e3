"""Changes of lists, dicts and sets outside of a helper: values of a lane must not get into them.

    CACHE[key] = value      ==>      CACHE[key] = support.kept_outside(value)

A helper is traced once, so that what it keeps in a global list would be the value of no lane. Values that are known
while compiling may be kept: tables that are made once are a common thing.
"""

from __future__ import annotations

import sys
from collections import deque
from types import ModuleType

import gast

from pcbatch.data.catalogue import facts
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.tree import Node

OTHERS = sys.stdlib_module_names | {"jax", "jaxlib", "numpy", "pcbatch", "builtins"}
KINDS = (list, dict, set, deque, bytearray)


def changes_outside(unit: Unit, node: Node, hidden: frozenset[str]) -> bool:
    """Whether a call or an assignment changes a global or captured container."""
    if isinstance(node, gast.Call):
        method = isinstance(node.func, gast.Attribute) and facts(node.func.attr).changes
        return method and isinstance(resolve(unit, node.func.value, hidden), KINDS)
    targets = (
        node.targets if isinstance(node, gast.Assign) else [node.target] if isinstance(node, gast.AugAssign) else []
    )
    parts = [target for target in targets if isinstance(target, gast.Subscript)]
    return any(isinstance(resolve(unit, part.value, hidden), KINDS) for part in parts)


def known_object(unit: Unit, node: Node, hidden: frozenset[str]) -> bool:
    """Whether a node is an object of a class of the user's that exists while compiling."""
    value = resolve(unit, node, hidden)
    if value is MISSING or isinstance(value, type | ModuleType) or not hasattr(type(value), "__dict__"):
        return False
    return str(type(value).__module__).split(".")[0] not in OTHERS


def attribute_owner(node: Node) -> Node:
    """The name whose attribute an assignment changes; None for other nodes."""
    targets = (
        node.targets if isinstance(node, gast.Assign) else [node.target] if isinstance(node, gast.AugAssign) else []
    )
    owners = [target.value for target in targets if isinstance(target, gast.Attribute)]
    return owners[0] if len(owners) == 1 and isinstance(owners[0], gast.Name) else None
