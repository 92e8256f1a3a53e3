"""The values of a task program that depend on what a gradient is taken of: cotangents of others lead nowhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pcbatch.ir.forks import leaves
from pcbatch.ir.tasks import Finish, Give, Spawn, Start, Sync, TaskJump, spawns
from pcbatch.runtime.tasks.plan import BlockPlan, TaskPlan
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.tape.block_ssa import Body, Load, LoadedPart, Node, PoppedSlot, ReadRegister, SharedValue


def active_parameters(plan: TaskPlan, bodies: Mapping[str, Body], moved: Collection[str]) -> dict[str, frozenset[str]]:
    """Return, by label, the floating parameters of blocks that depend on the variables `moved`."""
    found: dict[str, frozenset[str]] = {block.label: frozenset() for block in plan.blocks}
    floats = {v for v, t in plan.program.types.items() if t is not None and is_float(t)}
    entry = plan.entry
    found[entry.label] = frozenset(v for v in entry.block.params if v in moved and v in floats)
    homes: set[tuple[str, int | None]] = set()  # places of frames that hold such values
    while True:
        before = (dict(found), set(homes))
        for block in plan.blocks:
            sent = depending(bodies[block.label], found[block.label], moved)
            for label, param, source in _bindings(block):
                if source in sent and param in floats:
                    found[label] |= {param}
            homes |= set(_filled(plan, block, sent))
        for label, places in plan.sites.homes.items():
            params = plan.program.block(label).params
            found[label] |= {v for v, h in places.items() if (h.key, h.slot) in homes and v in floats and v in params}
        if before == (found, homes):
            return found


def depending(body: Body, params: Collection[str], moved: Collection[str]) -> frozenset[str]:
    """Return the floating variables that a block sends on and that depend on these parameters and variables."""
    numbers: set[int] = set()
    for source in body.sources:
        match source:
            case PoppedSlot(name=v):
                numbers |= {source.number} if v in params else set()
            case SharedValue(name=v) | ReadRegister(name=v):
                numbers |= {source.number} if v in moved else set()
            case LoadedPart():
                pass  # by the step that loads it
    for step in body.steps:
        match step:
            case Node():
                numbers |= set(step.outs) if numbers & set(step.ins) else set()
            case Load(register=v):
                numbers |= {step.out} if v in moved else set()
            case _:
                pass
    return frozenset(v for v, number in body.pushes.items() if number in numbers)


def _bindings(block: BlockPlan) -> Iterator[tuple[str, str, str]]:
    """The label, the parameter and the variable of each binding of a record that a block pushes."""
    for leaf in leaves(block.block.terminator):
        if isinstance(leaf, TaskJump):
            yield from ((leaf.target, p, v) for p, v in leaf.args)
    for op in spawns(block.block):
        for way in leaves(op.way):
            if isinstance(way, Start):
                yield from ((way.label, p, v) for p, v in way.args)


def _filled(plan: TaskPlan, block: BlockPlan, sent: Collection[str]) -> Iterator[tuple[str, int | None]]:
    """The places of frames that a block puts values of `sent` into."""
    for leaf in leaves(block.block.terminator):
        match leaf:
            case Sync(target=target, args=args):
                for p, v in args:
                    home = plan.sites.homes[target][p]
                    if v in sent:
                        yield home.key, home.slot
            case Finish(values=values):
                for key, v in zip(block.results.keys, values, strict=True):
                    if v in sent:
                        yield from ((key, slot) for slot in range(block.results.slots))
            case _:
                pass
    for op in spawns(block.block):
        for way in leaves(op.way):
            if isinstance(op, Spawn) and isinstance(way, Give):
                keys = plan.sites.of(plan.program, op.dsts).keys
                for key, v in zip(keys, way.values, strict=True):
                    if v in sent:
                        yield key, plan.sites.slots[op.dsts]
