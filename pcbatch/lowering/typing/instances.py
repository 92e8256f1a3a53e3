"""Functions that have an instance for each tuple of shapes of their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pcbatch.ir.cfg import CfgProgram, Function
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract

MOST = 64  # instances of one function
SUFFIX = ".shape"
"""The part of the name of an instance that follows that of the function."""
Shapes = tuple[tuple[tuple[int, ...], ...], ...]


def base_of(name: str) -> str:
    """Return the name of the function of which a function is an instance; its own name if it is none."""
    return name.partition(SUFFIX)[0]


def any_instance(functions: Mapping[str, Function], base: str) -> Function:
    """Return a function by its name, or an instance of it where all calls have become those of instances."""
    return functions[base] if base in functions else next(f for name, f in functions.items() if base_of(name) == base)


class TooManyError(Exception):
    """A function would have more instances than `MOST`."""


class Instances:
    """The instances of some functions, as inference meets calls of them.

    Attributes:
        functions: the functions, by their names.
        names: the function of each instance, by its name; the first instance has that of the function.
        targets: the instance that is called, by function, block and index of the operation.
    """

    def __init__(self, functions: frozenset[str], args: Mapping[str, Abstract] | None, program: CfgProgram) -> None:
        self.functions = functions
        self.names: dict[str, str] = {}
        self.targets: dict[tuple[str, str, int], str] = {}
        self._found: dict[str, dict[Shapes, str]] = {name: {} for name in functions}
        if args is not None:  # the entry is one of them, and keeps its name
            entry = program.function(program.entry)
            self._named(entry.name, [args[param] for param in entry.params])

    def target(self, key: tuple[str, str, int], function: Function, args: Sequence[Abstract]) -> Function:
        """Return the instance of a function for the arguments of a call, the operation `key`."""
        self.targets[key] = name = self._named(function.name, args)
        return replace(function, name=name)

    def _named(self, function: str, args: Sequence[Abstract]) -> str:
        shapes = tuple(
            tuple(leaf.shape if isinstance(leaf, ArrayType) else () for leaf in value.leaves) for value in args
        )
        found = self._found[function]
        if shapes not in found:
            if len(found) == MOST:
                raise TooManyError
            found[shapes] = name = f"{function}{SUFFIX}{len(found) + 1}" if found else function
            self.names[name] = function
        return found[shapes]
