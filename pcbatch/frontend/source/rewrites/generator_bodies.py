"""The bodies of generator functions that are written out where they are gone over, with names that are new there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pcbatch.frontend.source.callee import Statics, Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.rewrites.nested import lift, to_lift
from pcbatch.frontend.source.rewrites.simple_words import in_simple_words
from pcbatch.frontend.source.scope import definitions as defined
from pcbatch.frontend.source.scope import parameters, renamed
from pcbatch.frontend.source.tree import rebuild
from pcbatch.ir.names import unused


@dataclass(frozen=True, slots=True)
class WrittenOut:
    """A generator function that is written out: the unit with its variables renamed, and their new names."""

    unit: Unit
    names: dict[str, str]


def write_out(unit: Unit, target: Target, statics: Statics, taken: frozenset[str], number: int) -> WrittenOut:
    """Make the unit of a generator whose body is to stand in `unit`; `taken` are names that it must avoid."""
    own = in_simple_words(target.fn, unit.helpers, statics, target)
    captured = {inner for inner, _ in target.captured}
    local = [name for name in own.bound if name not in captured and name not in own.imports]
    names: dict[str, str] = {}
    for name in local:
        readable = name if name.strip("_") else "unused"  # `__1` would be a private name in a class
        names[name] = unused(f"{readable}_{number}", "_", taken, own.names, names.values())
    node = rebuild(own.node, lambda child: renamed(child, names))
    args = rebuilt_parameters(own, names)

    def renamed_to(name: str) -> str:
        return names.get(name, name)

    made = dict(defined(node.body))  # the renamed nodes of the functions inside
    definitions = {renamed_to(name): made[renamed_to(name)] for name in own.definitions}
    nested = {new: made.get(new) or renamed(d, names) for name, d in own.nested.items() for new in (renamed_to(name),)}
    lifted = {name: value for name, value in own.lifted.items() if name not in own.definitions}
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
        lifted=lifted,
        passed={},
        generates=True,
    )
    lifted.update(lift(whole, to_lift(whole, definitions), definitions))  # these refer to this unit
    return WrittenOut(whole, names)


def rebuilt_parameters(unit: Unit, names: dict[str, str]) -> tuple[str, ...]:
    """The parameters of a function that is written out, by their new names."""
    return tuple(names.get(name, name) for name in parameters(unit.node.args))
