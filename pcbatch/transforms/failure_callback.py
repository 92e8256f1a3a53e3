"""The callback that reports failures from inside a program that JAX traces: lanes that failed, a tape that was full.

It is an operation that passes values on, and calls the host where a flag is set: in a branch of a conditional, so that
a run without failures makes no call. It comes after a run, never in the loop of a machine. There is no callback in a
program that `jax.export` makes (which can hold none), nor in one that XLA partitions over devices by itself (where the
conditional would be a collective).

A callback has a price: JAX keeps no program with one in its persistent cache. See `failure_mode`.
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
from pcbatch.runtime.sharding.custom_partitioning import is_spread
from pcbatch.runtime.sharding.lane_sharding import to_host, without_mesh
from pcbatch.runtime.vm.raw_result import debug_checks

VARIABLE = "PCBATCH_ON_FAILURE"
QUIET = 'inside `jit` nothing else can be said; `on_failure="ignore"` keeps this quiet, `on_failure="error"` raises it'


def failure_mode(options: Options, usual: str = "warn") -> str:
    """The mode of a traced call where lanes fail: "warn", "error" or "ignore".

    The option `on_failure` decides, then the environment (`VARIABLE`). Else it is the `usual` one, unless JAX's
    persistent cache is in use, which takes no programs with callbacks. Raises UsageError if the variable has another
    value.
    """
    if options.on_failure is not None:
        return options.on_failure
    variable = os.environ.get(VARIABLE)
    if variable:
        checked_on_failure(VARIABLE, variable)
        return variable
    config: Any = jax.config
    cached = bool(config.jax_enable_compilation_cache and config.jax_compilation_cache_dir)
    return "ignore" if cached else usual


@dataclass(frozen=True, eq=False)
class Notice:
    """The report of failures of one program; equal to itself alone.

    `findings` makes the diagnostics from the flags, which it gets as NumPy arrays. A warning is given once for each
    code and place.
    """

    findings: Callable[..., Sequence[Diagnostic]]
    warned: set[Any] = field(default_factory=set, repr=False)  # a jaxpr reads the same after a warning

    def deliver(self, mode: str, *flags: Any) -> None:
        """Warn, or raise BatchRuntimeError if the mode is "error"."""
        diagnostics = self.findings(*map(np.asarray, flags))
        if mode == "error":
            raise BatchRuntimeError(diagnostics)
        for diagnostic in diagnostics:
            told = diagnostic.code, diagnostic.primary and diagnostic.primary.loc
            if told not in self.warned:
                self.warned.add(told)
                _warn(diagnostic)


def _warn(diagnostic: Diagnostic) -> None:
    text = render(replace(diagnostic, notes=(*diagnostic.notes, QUIET)), "warning")
    if diagnostic.primary is None:
        warnings.warn(text, UserWarning, stacklevel=2)
    else:  # the stack is that of a thread of XLA
        warnings.warn_explicit(text, UserWarning, diagnostic.primary.loc.file, diagnostic.primary.loc.line)


_notify: Any = jex.Primitive("pcbatch_told")
_notify.multiple_results = True
_is_unknown: Any = ad.is_undefined_primal
_struct: Any = jax.ShapeDtypeStruct


def notify_if(notice: Notice, mode: str, flags: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Return the values, in a program that delivers the notice if an element of the first flag is not zero.

    All flags are passed to `Notice.findings`. Where no value is used, JAX drops the operation and nothing is delivered.
    """
    assert mode in ON_FAILURE
    out: list[Any] = _notify.bind(*flags, *values, notice=notice, mode=mode, count=len(flags))
    return out


def _impl(*args: Any, notice: Notice, mode: str, count: int) -> list[Any]:
    flags, values = args[:count], list(args[count:])
    strict = bool(debug_checks()) and any(jnp.issubdtype(x.dtype, jnp.inexact) for x in values)
    if (mode != "ignore" or strict) and np.any(to_host(flags[0])):
        on_host = [to_host(flag) for flag in flags]
        if strict:
            raise NonFiniteError(list(notice.findings(*on_host)))
        notice.deliver(mode, *on_host)
    return values


_notify.def_impl(_impl)
_notify.def_abstract_eval(lambda *avals, notice, mode, count: list(avals[count:]))


def _lowered(ctx: Any, *operands: Any, notice: Notice, mode: str, count: int) -> Any:
    values = list(operands[count:])
    module = ctx.module_context
    if mode == "ignore" or module.lowering_parameters.for_export or is_spread(module) or _runs_elsewhere(module):
        return values

    def call_if(*flags: Any) -> list[Any]:
        call = partial(jax.debug.callback, partial(notice.deliver, mode))
        jax.lax.cond(jnp.any(flags[0].astype(bool)), lambda flags: call(*flags), lambda _: None, flags)
        return []

    with without_mesh():  # the callback is that of one device, whatever mesh the surrounding program has
        closed = jax.make_jaxpr(call_if)(*(_struct(aval.shape, aval.dtype) for aval in ctx.avals_in[:count]))
        plain = ctx.replace(avals_in=list(closed.in_avals), avals_out=[])
        mlir.lower_fun(call_if, multiple_results=True)(plain, *operands[:count])
    return values


def _runs_elsewhere(module: Any) -> bool:
    """Whether a module is lowered for a platform that this process does not compile it for, which cannot call back."""
    try:
        module.get_backend()
    except (ValueError, RuntimeError):  # NotImplementedError among them: for several platforms
        return True
    return False


mlir.register_lowering(_notify, _lowered)


def _batch(args: Sequence[Any], axes: Sequence[int | None], *, notice: Notice, mode: str, count: int) -> Any:
    """The batching rule. Flags get the elements of the `vmap` as their first axis, values stay as they are."""
    pairs = list(zip(args, axes, strict=True))
    flags = [x if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in pairs[:count]]
    return notify_if(notice, mode, flags, args[count:]), axes[count:]


batching.primitive_batchers[_notify] = _batch


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, notice: Notice, mode: str, count: int) -> Any:
    """The JVP rule. Tangents get an operation of their own: often either they or the values are unused, and dropped."""
    flags, values, of_values = primals[:count], primals[count:], list(tangents[count:])
    positions = [k for k, t in enumerate(of_values) if not isinstance(t, ad.Zero)]
    outs = notify_if(notice, mode, flags, values)
    if positions:
        for k, t in zip(positions, notify_if(notice, mode, flags, [of_values[k] for k in positions]), strict=True):
            of_values[k] = t
    return outs, of_values


ad.primitive_jvps[_notify] = _jvp


def _transpose(cotangents: Sequence[Any], *args: Any, notice: Notice, mode: str, count: int) -> list[Any]:
    of_values = list(cotangents)
    positions = [k for k, ct in enumerate(of_values) if not isinstance(ct, ad.Zero) and _is_unknown(args[count + k])]
    if positions:
        passed = notify_if(notice, mode, args[:count], [of_values[k] for k in positions])
        for k, ct in zip(positions, passed, strict=True):
            of_values[k] = ct
    wanted = (ct if _is_unknown(x) else None for ct, x in zip(of_values, args[count:], strict=True))
    return [*[None] * count, *wanted]


ad.primitive_transposes[_notify] = _transpose
