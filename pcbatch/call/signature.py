"""The signature of a batched function: its parameters, binding, and the options that name parameters."""

from __future__ import annotations

import inspect
from dataclasses import replace
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import Shown, short
from pcbatch.options import Options
from pcbatch.plan import Plan


def signature(fn: Any) -> inspect.Signature:
    """The parameters of the function itself, whatever `functools.wraps` or `__signature__` claim."""
    parts = (fn.__code__, fn.__defaults__, fn.__kwdefaults__)  # reloading tools change these in old functions
    cached = _signatures.get(fn)
    if cached is not None and all(a is b for a, b in zip(cached[0], parts, strict=True)):
        return cached[1]
    bare = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    bare.__kwdefaults__ = fn.__kwdefaults__
    own = inspect.signature(bare)
    _signatures[fn] = parts, own
    return own


# Every call needs a signature: the parts of a function that it depends on, and the signature.
_signatures: WeakKeyDictionary[Any, tuple[tuple[Any, ...], inspect.Signature]] = WeakKeyDictionary()


def bind(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
    """Match arguments to parameters, without defaults."""
    parameters = signature(fn)
    try:
        return parameters.bind(*args, **kwargs)
    except TypeError as error:
        note = f"the signature is {fn.__name__}{_in_short(parameters)}"
        help = _about_options(fn.__name__, set(kwargs) - set(parameters.parameters))
        raise usage("PCB402", f"{fn.__name__}(): {error}", note, help=help) from None


def _about_options(name: str, unknown: set[str]) -> str:
    """The help for a call whose arguments do not fit, with these names that are no parameters."""
    if options := sorted(unknown & set(Options.__dataclass_fields__)):
        return f"`{options[0]}` is an option of the function: `{name}.with_options({options[0]}=...)(...)`"
    if of_plan := sorted(unknown & set(Plan.__dataclass_fields__)):
        new = f"plan=pcbatch.Plan({of_plan[0]}=...)"
        return f"`{of_plan[0]}` is of the plan of the function: `{name}.with_options({new})(...)`"
    if unknown & {"lanes", "chunk"}:
        return f"`{min(unknown & {'lanes', 'chunk'})}` is for `{name}.map(...)`; a call has a lane for each input"
    return "pass each parameter once; only those with a default may be left out"


def _in_short(full: inspect.Signature) -> inspect.Signature:
    """A signature whose defaults are shown in short."""
    parameters = full.parameters.values()
    return full.replace(
        parameters=[p if p.default is p.empty else p.replace(default=Shown(short(p.default))) for p in parameters]
    )


def checked_names(fn: Any, options: Options) -> Options:
    """Make tuples of the options that name parameters; UsageError for a name that is no parameter."""
    known = signature(fn).parameters
    for option in ("static_argnames", "donate_argnames"):
        names = getattr(options, option)
        names = (names,) if isinstance(names, str) else names
        if not isinstance(names, tuple | list):
            title = f"{option} must be a name or a tuple of names, not {short(names)}"
            raise usage("PCB401", title, help=f'write `{option}="name"` or `{option}=("a", "b")`')
        for name in names:
            if name not in known:
                title = f"{option} names `{name}`, which is not a parameter of {fn.__name__}"
                raise usage("PCB403", title, help=f"the parameters are {', '.join(known)}")
        changes: dict[str, Any] = {option: tuple(names)}
        options = replace(options, **changes)
    both = [name for name in options.donate_argnames if name in options.static_argnames]
    if both:
        title = f"`{both[0]}` is named in static_argnames and in donate_argnames of {fn.__name__}"
        raise usage("PCB403", title, help="leave it out of `donate_argnames`: a constant has no buffer to give away")
    return options
