"""The operation that tells people, from inside a program that JAX traces, that lanes failed or that a tape was full.

It passes values on, and calls the host back where something is wrong: in a branch of a conditional, so that a run in
which all is well calls nobody. It stands behind a run, never in the loop of a machine. Nothing is told by a program
that `jax.export` makes (it can hold no callback), and by one that XLA spreads over several devices as it likes (there
the conditional would be a collective).

A callback has its price: JAX keeps no program that holds one in its persistent cache. See `mode_of`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

from pcbatch.diagnostics.diagnostic import Diagnostic, render
from pcbatch.errors import BatchRuntimeError, NonFiniteError
from pcbatch.options import ON_FAILURE, Options, checked_on_failure
from pcbatch.runtime.sharding.ambient_mesh import without_mesh
from pcbatch.runtime.sharding.custom_partitioning import is_spread
from pcbatch.runtime.sharding.lane_sharding import to_host
from pcbatch.runtime.vm.raw_result import debug_checks

VARIABLE = "PCBATCH_ON_FAILURE"
QUIET = 'inside `jit` nothing else can be said; `on_failure="ignore"` keeps this quiet, `on_failure="error"` raises it'


def mode_of(options: Options) -> str:
    """What a traced call does where lanes fail: as the option says, or the environment; else it warns, unless JAX's
    persistent cache is in use, which takes no programs that call the host back."""
    if options.on_failure is not None:
        return options.on_failure
    said = os.environ.get(VARIABLE)
    if said:
        checked_on_failure(VARIABLE, said)
        return said
    config: Any = jax.config
    cached = bool(config.jax_enable_compilation_cache and config.jax_compilation_cache_dir)
    return "ignore" if cached else "warn"


@dataclass(frozen=True, eq=False)
class Notice:
    """What there is to say of one program; equal to itself alone. `findings` makes it of the flags, as the host sees
    them. A warning is given once for each code."""

    findings: Callable[..., Sequence[Diagnostic]]
    told: set[str] = field(default_factory=set)

    def tell(self, mode: str, *flags: Any) -> None:
        """Warn, or raise BatchRuntimeError."""
        found = self.findings(*map(np.asarray, flags))
        if mode == "error":
            raise BatchRuntimeError(found)
        for each in found:
            if each.code not in self.told:
                self.told.add(each.code)
                _warn(each)


def _warn(found: Diagnostic) -> None:
    text = render(replace(found, notes=(*found.notes, QUIET)), "warning")
    if found.primary is None:
        warnings.warn(text, UserWarning, stacklevel=2)
    else:  # the stack is that of a thread of XLA
        warnings.warn_explicit(text, UserWarning, found.primary.loc.file, found.primary.loc.line)


_told: Any = jex.Primitive("pcbatch_told")
_told.multiple_results = True
_is_unknown: Any = ad.is_undefined_primal
_struct: Any = jax.ShapeDtypeStruct


def told(notice: Notice, mode: str, flags: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The values; where an element of the first flag is not zero, the notice is told of all flags. What nobody uses of
    the values tells nothing."""
    assert mode in ON_FAILURE
    out: list[Any] = _told.bind(*flags, *values, notice=notice, mode=mode, count=len(flags))
    return out


def _impl(*args: Any, notice: Notice, mode: str, count: int) -> list[Any]:
    flags, values = args[:count], list(args[count:])
    strict = bool(debug_checks()) and any(jnp.issubdtype(x.dtype, jnp.inexact) for x in values)
    if (mode != "ignore" or strict) and np.any(to_host(flags[0])):
        known = [to_host(flag) for flag in flags]
        if strict:
            raise NonFiniteError(list(notice.findings(*known)))
        notice.tell(mode, *known)
    return values


_told.def_impl(_impl)
_told.def_abstract_eval(lambda *avals, notice, mode, count: list(avals[count:]))


def _lowered(ctx: Any, *operands: Any, notice: Notice, mode: str, count: int) -> Any:
    values = list(operands[count:])
    module = ctx.module_context
    if mode == "ignore" or module.lowering_parameters.for_export or is_spread(module):
        return values

    def asked(*flags: Any) -> list[Any]:
        say = partial(jax.debug.callback, partial(notice.tell, mode))
        jax.lax.cond(jnp.any(flags[0].astype(bool)), lambda flags: say(*flags), lambda _: None, flags)
        return []

    with without_mesh():
        closed = jax.make_jaxpr(asked)(*(_struct(aval.shape, aval.dtype) for aval in ctx.avals_in[:count]))
        plain = ctx.replace(avals_in=list(closed.in_avals), avals_out=[])
        mlir.lower_fun(asked, multiple_results=True)(plain, *operands[:count])
    return values


mlir.register_lowering(_told, _lowered)


def _batch(args: Sequence[Any], axes: Sequence[int | None], *, notice: Notice, mode: str, count: int) -> Any:
    """Elements of a `vmap` stand in front of flags."""
    pairs = list(zip(args, axes, strict=True))
    flags = [x if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in pairs[:count]]
    return told(notice, mode, flags, args[count:]), axes[count:]


batching.primitive_batchers[_told] = _batch


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, notice: Notice, mode: str, count: int) -> Any:
    """Tangents are passed on by themselves, as values are: often one of both is of no use, and drops out."""
    flags, values, pushed = primals[:count], primals[count:], list(tangents[count:])
    places = [k for k, t in enumerate(pushed) if not isinstance(t, ad.Zero)]
    outs = told(notice, mode, flags, values)
    if places:
        for k, t in zip(places, told(notice, mode, flags, [pushed[k] for k in places]), strict=True):
            pushed[k] = t
    return outs, pushed


ad.primitive_jvps[_told] = _jvp


def _transpose(cotangents: Sequence[Any], *args: Any, notice: Notice, mode: str, count: int) -> list[Any]:
    given = list(cotangents)
    places = [k for k, ct in enumerate(given) if not isinstance(ct, ad.Zero) and _is_unknown(args[count + k])]
    if places:
        for k, ct in zip(places, told(notice, mode, args[:count], [given[k] for k in places]), strict=True):
            given[k] = ct
    return [*[None] * count, *(ct if _is_unknown(x) else None for ct, x in zip(given, args[count:], strict=True))]


ad.primitive_transposes[_told] = _transpose
