"""`f.trace(...)`, and what the stages ahead of a run tell of the arguments and the result, as `jax.stages` does."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

import jax

from pcbatch.call.arguments import signature, usage
from pcbatch.call.out_axes import inserted
from pcbatch.call.static_leaves import is_static
from pcbatch.lowering.typing.abstract_values import array_type
from pcbatch.lowering.typing.jax_types import to_aval

if TYPE_CHECKING:
    from pcbatch.api.lowered import Lowered
    from pcbatch.compiler.program import Program


@dataclass(frozen=True, slots=True)
class Avals:
    """Shapes and dtypes of a call. `args_info`: a pair (args, kwargs) as it was given, static arguments left out;
    `out_info`: what the call gives. Leaves are `jax.ShapeDtypeStruct`s."""

    args_info: Any
    out_info: Any


def avals_of(fn: FunctionType, compiled: Program, lanes: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Avals:
    """What goes into a call of so many lanes, and what comes out of it."""
    static = compiled.options.static_argnames
    names = list(signature(fn).parameters)
    kept = tuple(arg for k, arg in enumerate(args) if k >= len(names) or names[k] not in static)
    named = {name: arg for name, arg in kwargs.items() if name not in static}
    assert compiled.stages.result is not None
    types = [array_type(leaf) for leaf in compiled.stages.result.leaves]
    outs = [to_aval(t, (lanes,)) for t in types]
    outs = [inserted(out, axis) for out, axis in zip(outs, compiled.out_axes, strict=True)]
    return Avals(jax.tree.map(_aval, (kept, named)), jax.tree.unflatten(compiled.stages.result.tree, outs))


def _aval(leaf: Any) -> jax.ShapeDtypeStruct | None:
    if is_static(leaf):
        return None
    leaf = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.eval_shape(lambda x: x, leaf)
    make: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX
    aval: jax.ShapeDtypeStruct = make(leaf.shape, leaf.dtype, weak_type=bool(getattr(leaf, "weak_type", False)))
    return aval


class Described:
    """What every stage tells of the arguments and the result."""

    __slots__ = ()

    @property
    def avals(self) -> Avals | None:
        """The types, if they are known."""
        raise NotImplementedError

    @property
    def args_info(self) -> Any:
        """The types of the arguments: (args, kwargs), without static ones."""
        return self._known().args_info

    @property
    def out_info(self) -> Any:
        """The types of the result."""
        return self._known().out_info

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments."""
        return jax.tree.structure(self.args_info)

    @property
    def out_tree(self) -> Any:
        """The structure of the result."""
        return jax.tree.structure(self.out_info)

    @property
    def in_avals(self) -> tuple[Any, ...]:
        """The types of the array leaves of the arguments, in order."""
        return tuple(jax.tree.leaves(self.args_info))

    @property
    def out_avals(self) -> tuple[Any, ...]:
        """The types of the leaves of the result, in order."""
        return tuple(jax.tree.leaves(self.out_info))

    def _known(self) -> Avals:
        if self.avals is None:
            help = "lower the function for arguments, or for `jax.ShapeDtypeStruct`s: `f.lower(x)`"
            raise usage("PCB410", "the types of a result need those of all arguments", help=help)
        return self.avals


@dataclass(frozen=True, slots=True)
class Traced(Described):
    """A batched function traced for one signature, like `jax.stages.Traced`."""

    lowered: Lowered
    avals: Avals | None

    @property
    def jaxpr(self) -> Any:
        """The program of a run. It takes the array leaves of the arguments; what it gives begins with the leaves of the
        result (the lanes along their first axis), and goes on with the status of each lane and other notes."""
        return self.lowered.jaxpr()

    @property
    def fun_name(self) -> str:
        """What the function is called."""
        return self.lowered.fn.__name__

    def lower(self) -> Lowered:
        """The next stage."""
        return self.lowered
