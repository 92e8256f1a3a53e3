"""The function under construction: blocks, temporaries, and the finished `Function`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import MappingProxyType

import gast

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.frontend.build.primitives import make_expr, used_helpers
from pcbatch.frontend.source.callee import Statics, Target
from pcbatch.frontend.source.faults import Faults
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.tree import Node, load
from pcbatch.ir.cfg import Block, Function, Op, Terminator
from pcbatch.ir.def_use import reads, retarget, successors, terminator_reads, writes
from pcbatch.ir.ops import Jump, Prim, Return


@dataclass(slots=True)
class Draft:
    """A block being filled. `helpers` are its definitions (None) and uses (the node) of helper functions; `deleted`
    are variables with the number of operations before their `del`, and where it stands."""

    ops: list[Op] = field(default_factory=list)
    deleted: list[tuple[int, str, Node]] = field(default_factory=list)
    helpers: list[tuple[str, Node | None]] = field(default_factory=list)
    terminator: Terminator | None = None


class Builder:
    """Appends operations to the current block. After a jump the current block is a new, unreachable one."""

    def __init__(self, unit: Unit, faults: Faults, symbol: Callable[[Target, Statics], str]) -> None:
        self.unit = unit
        self.faults = faults
        self.symbol = symbol
        self.drafts: dict[str, Draft] = {}
        self.result = _fresh("r", unit.names)
        self._next_temp = 0
        self.stands_for: dict[str, Node] = {}  # expressions of the user's, by the temporaries that hold their values
        self.variables = unit.variables | {self.result}
        self.current = self.label()

    def label(self) -> str:
        """A new, empty block."""
        name = f"bb{len(self.drafts)}"
        self.drafts[name] = Draft()
        return name

    def temp(self) -> str:
        """A new variable that no name of the user's function equals."""
        while (name := f"t{self._next_temp}") in self.unit.names:
            self._next_temp += 1
        self._next_temp += 1
        self.variables |= {name}
        return name

    def held(self, name: str, node: Node) -> Node:
        """The variable that holds the value of `node`, as an expression in its place."""
        self.stands_for[name] = node
        return load(name, node)

    def loc(self, node: Node) -> Loc:
        """Where a node stands in the user's source."""
        return self.unit.source.loc(node)

    def emit(self, op: Op) -> None:
        """Append an operation to the current block."""
        self.drafts[self.current].ops.append(op)

    def prim(self, dsts: tuple[str, ...], node: Node, *, shown: Node | None = None, at: Node | None = None) -> None:
        """Append `dsts = node`; `at` is the source to blame, the node itself if not given."""
        place = node if at is None else at
        self.drafts[self.current].helpers += [(name, place) for name in used_helpers(self.unit, node)]
        expr = make_expr(self.unit, node, self.variables, arity=len(dsts), shown=shown, parts=self.stands_for)
        self.emit(Prim(dsts, expr, self.loc(place)))

    def delete(self, target: Node) -> None:
        """Note `del target`, for a name or a pattern of names."""
        if isinstance(target, gast.Name):
            draft = self.drafts[self.current]
            draft.deleted.append((len(draft.ops), target.id, target))
        for element in getattr(target, "elts", []):
            self.delete(element)

    def define(self, name: str) -> None:
        """Note that control has passed the definition of a helper function."""
        self.drafts[self.current].helpers.append((name, None))

    def end(self, terminator: Terminator) -> None:
        """Close the current block; code that follows without a new label is unreachable."""
        self.drafts[self.current].terminator = terminator
        self.current = self.label()

    def jump(self, target: str) -> None:
        """Close the current block with a jump."""
        self.end(Jump(target))

    def start(self, label: str) -> None:
        """Continue in the block `label`."""
        self.current = label

    def reachable(self) -> list[str]:
        """Labels of the blocks that can run, in reverse postorder."""
        return list(reversed(list(self._postorder())))

    def _postorder(self) -> Iterator[str]:
        seen = {"bb0"}
        stack = [("bb0", iter(self.followers("bb0")))]
        while stack:
            label, rest = stack[-1]
            following = next((name for name in rest if name not in seen), None)
            if following is None:
                yield stack.pop()[0]
            else:
                seen.add(following)
                stack.append((following, iter(self.followers(following))))

    def followers(self, label: str) -> tuple[str, ...]:
        """Labels that may come after `label`."""
        # The false side first, so that in reverse postorder the true side (a loop's body) comes first.
        terminator = self.drafts[label].terminator
        return () if terminator is None else tuple(reversed(successors(terminator)))

    def finish(self, name: str, inline: bool) -> Function:
        """The function with its reachable blocks, renumbered."""
        order = self.reachable()
        number = {label: f"bb{i}" for i, label in enumerate(order)}
        blocks = []
        for label in order:
            terminator = self.drafts[label].terminator
            new = Return() if terminator is None else retarget(terminator, number.__getitem__)
            blocks.append(Block(number[label], tuple(self.drafts[label].ops), new))
        names = [*self.unit.params, self.result]
        for block in blocks:
            for op in block.ops:
                names += [*reads(op), *writes(op)]
            names += terminator_reads(block.terminator)
        return Function(
            name=name,
            params=self.unit.params,
            results=(self.result,),
            blocks=tuple(blocks),
            types=MappingProxyType(dict.fromkeys(names)),
            loc=self.unit.header,
            inline=inline,
        )


def _fresh(name: str, taken: frozenset[str]) -> str:
    while name in taken:
        name += "_"
    return name
