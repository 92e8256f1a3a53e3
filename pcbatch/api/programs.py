"""The programs of a batched function: one for each signature, compiled by the first call that needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import RLock
from types import FunctionType
from typing import Any

import jax

from pcbatch.call.arguments import Arguments, checked_names, prepare, signature, types_of_fixed, usage
from pcbatch.call.placement import requested_devices
from pcbatch.compiler.program import Program, compile_signature
from pcbatch.diagnostics.short_repr import short
from pcbatch.frontend.source.callee import BatchedTest
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.jax_types import settings
from pcbatch.lowering.typing.trace import inside_primitive
from pcbatch.options import Options
from pcbatch.runtime.sharding.ambient_mesh import without_mesh
from pcbatch.runtime.sharding.lane_sharding import Devices


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """The programs of one function under one set of options, and the way from the arguments of a call to one of them.

    `fixed` are arguments before those of every call, which all lanes share: the object of a method.
    """

    fn: FunctionType
    options: Options
    is_batched: BatchedTest
    fixed: tuple[Any, ...] = ()
    cache: dict[Any, Program] = field(default_factory=dict)
    methods: dict[str, Programs] = field(default_factory=dict)  # by what the object is to the program
    compiling: RLock = field(default_factory=RLock)  # a second thread waits for the first

    @property
    def name(self) -> str:
        """The name of the function, for messages."""
        return self.fn.__name__

    def with_options(self, **changes: Any) -> Programs:
        """Change some options; what is compiled already stays with the old ones.

        Raises:
            UsageError: an unknown or ill-typed option.
        """
        check_option_names(changes)
        options = checked_names(self.fn, replace(self.options, **changes))
        return Programs(self.fn, options, self.is_batched, self.fixed)

    def of_method(self, instance: object) -> Programs:
        """The programs for calls whose first argument is `instance`, the same for all lanes.

        An object that JAX knows as a pytree gives its arrays, shared by the lanes; any other is a constant of the
        program.
        """
        opaque = jax.tree_util.treedef_is_leaf(jax.tree.structure(instance))
        kind = "constant" if opaque else "shared"
        with self.compiling:
            if kind not in self.methods:
                self.methods[kind] = self.with_options(**_method_options(self.fn, self.options, kind))
            m = self.methods[kind]
        # Not by `dataclasses.replace`, which is slower: every call of a method comes by here.
        return Programs(m.fn, m.options, m.is_batched, (instance,), m.cache, m.methods, m.compiling)

    def pop_devices(self, kwargs: dict[str, Any]) -> Devices:
        """Take `devices=` and `mesh=` out of the keyword arguments of a call, unless the function has such parameters.

        Returns:
            The devices that the lanes run on; None: where the arguments are.
        """
        return requested_devices(signature(self.fn).parameters, kwargs, self.options.devices)

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any], host: bool = False) -> Arguments:
        """Check the arguments of a call and split them into leaves; see `pcbatch.call.arguments.prepare`."""
        if inside_primitive():
            called = self.fn.__qualname__.rpartition("<locals>.")[2]
            raise usage(
                "PCB412",
                f"batched function `{self.name}` is called where the compiler does not see it",
                "a lane calls another batched function by its own name, a global or a closure variable",
                help=f"call `{called}(...)` in the batched function itself, or decorate the helper that calls it with "
                "`@pcbatch.inline`",
            )
        return prepare(self.fn, self.options, (*self.fixed, *args), kwargs, host=host)

    def types_of_fixed(self) -> dict[str, Abstract]:
        """The types of the parameters that `fixed` stands for."""
        return types_of_fixed(self.fn, self.options, self.fixed)

    def of_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, Arguments]:
        """The program that a call runs, and the call's arguments as leaves."""
        call = self.prepare(args, kwargs)
        return self.program(call), call

    def program(self, call: Arguments) -> Program:
        """The program for the signature of a call; compiles it if it is new.

        Raises:
            CompileError: the function cannot be compiled for these types.
            UsageError: `out_axes` does not fit the result.
        """
        program = self.compile(call)
        program.places()  # refuses a wrong `out_axes` before anything runs
        return program

    def compile(self, call: Arguments, varying: frozenset[str] = frozenset()) -> Program:
        """Compile for the signature of a call without a look at `out_axes`, which transformations of a run change.

        `varying` names the captured values of an outer trace that differ between lanes.
        """
        # Reloading tools put new code into old functions, and settings of JAX change what its types are.
        key = (call.key, settings(), self.fn.__code__, varying)
        with self.compiling:
            program = self.cache.get(key)
            if program is None:
                with without_mesh():  # a program outlives the mesh that it is traced under
                    program = compile_signature(self.fn, self.is_batched, self.options, call, self.compile, varying)
                if not program.captures:  # captured values belong to one trace of the user's
                    self.cache[key] = program
            return program


def check_option_names(options: Mapping[str, Any]) -> None:
    """Raise UsageError for a name that is no option of `pcbatch.batch`."""
    known = Options.__dataclass_fields__
    for name in options:
        if name not in known:
            raise usage("PCB401", f"unknown option {short(name)}", help=f"choose from {', '.join(known)}")


def _method_options(fn: FunctionType, options: Options, kind: str) -> dict[str, Any]:
    """The options that differ when the first parameter is the object of a method, a "constant" or "shared"."""
    first, *rest = signature(fn).parameters
    in_axes = options.in_axes
    if kind == "constant":
        return {"static_argnames": (first, *(name for name in options.static_argnames if name != first))}
    if in_axes is None or isinstance(in_axes, int):
        return {"in_axes": dict.fromkeys(rest, in_axes) | {first: None}}
    return {"in_axes": {**in_axes, first: None}} if isinstance(in_axes, Mapping) else {}
