"""Generator functions of the user's own code, which a `for` loop goes over: they are written out in the loop."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace

import gast

from pcbatch.data.object_parts import is_user_code
from pcbatch.frontend.source.along import callee_of, is_kept
from pcbatch.frontend.source.callee import Statics, Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.make_unit import make_unit
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.rewrites.nested import function_of, lift, to_lift
from pcbatch.frontend.source.scope import definitions as defined
from pcbatch.frontend.source.scope import parameters, renamed
from pcbatch.frontend.source.tree import SCOPES, Node, children, rebuild
from pcbatch.ir.names import unused

YIELDS = (gast.Yield, gast.YieldFrom)


def generator(unit: Unit, node: Node) -> Target | None:
    """The generator function that a node calls; None for any other node."""
    if not isinstance(node, gast.Call):
        return None
    name = node.func.id if isinstance(node.func, gast.Name) else ""
    if name in unit.definitions:
        definition = unit.definitions[name]
        if not is_generator(function_of(definition)):
            return None
        return lift(unit, frozenset({name}), unit.definitions).get(name)
    function = resolve(unit, node.func)
    if function is MISSING or isinstance(function, Target):
        return function if isinstance(function, Target) and inspect.isgeneratorfunction(function.fn) else None
    fn, args, keywords = callee_of(function)
    if fn is None or not inspect.isgeneratorfunction(fn) or not is_user_code(fn.__code__) or is_kept(fn.__code__):
        return None
    return Target(fn, args, keywords, along=True)


def is_generator(node: Node) -> bool:
    """Whether the body of a function has a `yield` of its own."""
    return not isinstance(node, gast.Lambda) and any(_yields(node.body))


def _yields(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        if isinstance(node, YIELDS):
            yield node
        elif not isinstance(node, SCOPES):
            yield from _yields(list(children(node)))


@dataclass(frozen=True, slots=True)
class WrittenOut:
    """A generator function that is written out: the unit with its variables renamed, and their new names."""

    unit: Unit
    names: dict[str, str]


def write_out(unit: Unit, target: Target, statics: Statics, taken: frozenset[str], number: int) -> WrittenOut:
    """Make the unit of a generator whose body is to stand in `unit`; `taken` are names that it must avoid."""
    own = make_unit(target.fn, unit.along, statics, target)
    captured = {inner for inner, _ in target.captured}
    local = [name for name in own.bound if name not in captured and name not in own.imports]
    names: dict[str, str] = {}
    for name in local:
        names[name] = unused(f"{name}_{number}", "_", taken, own.names, names.values())
    node = rebuild(own.node, lambda child: renamed(child, names))
    args = rebuilt_parameters(own, names)

    def renamed_to(name: str) -> str:
        return names.get(name, name)

    made = dict(defined(node.body))  # the renamed nodes of the functions inside
    definitions = {renamed_to(name): made[renamed_to(name)] for name in own.definitions}
    nested = {new: made.get(new) or renamed(d, names) for name, d in own.nested.items() for new in (renamed_to(name),)}
    whole = replace(
        own,
        node=node,
        params=args,
        bound={
            new: places if new not in definitions else (definitions[new],)
            for name, places in own.bound.items()
            for new in (renamed_to(name),)
        },
        variables=frozenset(map(renamed_to, own.variables)) | unit.variables,
        nested=nested,
        definitions=definitions,
        names=own.names | frozenset(names.values()) | unit.names,
        statics={renamed_to(name): value for name, value in own.statics.items()},
        lifted={name: value for name, value in own.lifted.items() if name not in own.definitions},
        passed={},
        generates=True,
    )
    inner = lift(whole, to_lift(whole, definitions), definitions)
    return WrittenOut(replace(whole, lifted={**whole.lifted, **inner}), names)


def rebuilt_parameters(unit: Unit, names: dict[str, str]) -> tuple[str, ...]:
    """The parameters of a function that is written out, by their new names."""
    return tuple(names.get(name, name) for name in parameters(unit.node.args))
