"""Functions of an executable as jitted programs, with what `jax.jit` must know of each beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from typing import Any

import jax

from pcbatch.runtime.costs import xla_options
from pcbatch.runtime.lowering_platform import lowering_platform


@dataclass(frozen=True, slots=True, eq=False)
class DeviceProgram:
    """A function of an executable and of arrays, to be jitted by a `ProgramCache`.

    Attributes:
        function: takes the executable, then arrays by position, then the static arguments by keyword.
        static: names of the keyword arguments that programs are specialised to.
        donate: positions, behind the executable, of the arguments whose buffers are donated.
    """

    function: Callable[..., Any]
    static: tuple[str, ...]
    donate: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The name of the function, which XLA's module gets."""
        return str(getattr(self.function, "__name__", self.function))

    def __call__(self, executable: Any, *args: Any, **static: Any) -> Any:
        """Call the function itself, as other traces do."""
        return self.function(executable, *args, **static)


def device_program(*static: str, donate: tuple[int, ...] = ()) -> Callable[[Callable[..., Any]], DeviceProgram]:
    """Declare the function below as a `DeviceProgram` with these static keyword arguments.

    Example:
        >>> @device_program("depth", donate=(0,))
        ... def grow(executable, state, *, depth): ...
    """
    return lambda function: DeviceProgram(function, static, donate)


@dataclass(slots=True)
class ProgramCache:
    """The jitted programs of one executable.

    Attributes:
        kernel: the size of a typical kernel, by which XLA's options are chosen.
        in_place: Whether XLA may analyse the order of reads and writes.
    """

    kernel: float
    in_place: bool
    _jitted: dict[tuple[DeviceProgram, str, Any], Any] = field(default_factory=dict)
    _of_calls: dict[tuple[DeviceProgram, str, int], Any] = field(default_factory=dict)  # to choose options takes time

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The programs so far: names and jitted functions."""
        return iter([(program.name, jitted) for (program, *_), jitted in self._jitted.items()])

    def jitted(self, program: DeviceProgram, executable: Any, lanes: int) -> Any:
        """Return `jax.jit(program)` of this executable, with XLA's options chosen for this number of lanes.

        Only outside traces: JAX allows no compiler options inside one.
        """
        call = program, lowering_platform(), lanes
        found = self._of_calls.get(call)
        if found is None:
            found = self._of_calls[call] = self._with_options(program, executable, lanes)
        return found

    def _with_options(self, program: DeviceProgram, executable: Any, lanes: int) -> Any:
        options = xla_options.compiler_options(self.kernel, lanes, self.in_place)
        key = program, lowering_platform(), options is None or tuple(options)
        if key not in self._jitted:
            jitted = jax.jit(
                _bound(program.function, executable),
                static_argnames=program.static,
                donate_argnums=program.donate,
                compiler_options=options,
            )
            self._jitted.setdefault(key, jitted)  # of several threads one comes first
        return self._jitted[key]


def _bound(function: Callable[..., Any], executable: Any) -> Any:
    """The function of this executable. It keeps its name: programs of equal text are then equal to XLA's cache."""
    bound: Any = partial(function, executable)
    return update_wrapper(bound, function)
