"""Names of the earlier release, which this one still accepts, with a warning that says what to write."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from pcbatch.call.usage import usage
from pcbatch.diagnostics.deprecated import warn_of_old
from pcbatch.diagnostics.short_repr import short
from pcbatch.options import NUMBERS, Numbers, Options
from pcbatch.plan import Plan

OF_PLAN = ("schedule", "emitter", "modes", "unroll", "narrow", "fork")
OF_NUMBERS = ("overflow", "math_errors")
GRAPHS = "command_buffers"
REPORTS = (
    *("BlockPlan", "BlockProfile", "BlockStats", "BlockTapeUse", "Blocks", "Explanation"),
    *("Profile", "Stats", "TapeUse", "Timeline", "Tuned"),
)
"""The public names that stand in `pcbatch.report` now."""

KINDS = {"Texts": "text", "Dicts": "dict", "Sets": "set", "RaggedBytes": "bytes", "RaggedTuples": "tuple"}
PUBLIC: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **{name: (f"pcbatch.report:{name}", f"write `from pcbatch.report import {name}`") for name in REPORTS},
        "Machine": ("pcbatch.runs.run_handle:Run", "write `pcbatch.Run`"),
        "load_packed": ("pcbatch.data.objects.packed:Packed.load", "write `pcbatch.Packed.load(path)`"),
        "texts": ("pcbatch.data.host.making:texts", 'write `pcbatch.ragged(["ab", "c"])`'),
        **{
            name: ("pcbatch.data.host.ragged:Ragged", f'write `pcbatch.Ragged`, whose `kind` is "{kind}"')
            for name, kind in KINDS.items()
        },
    }
)
"""The public names of the earlier release: where they are, and what to write instead."""

HELP_GRAPHS = 'leave it out; `XLA_FLAGS="--xla_gpu_enable_command_buffer="` keeps a program out of CUDA graphs'


def public_name(name: str) -> Any:
    """Return what a public name of the earlier release stands for, with a warning; the `__getattr__` of the package.

    Raises:
        AttributeError: neither release has the name.
    """
    if name not in PUBLIC:
        raise AttributeError(f"module 'pcbatch' has no attribute {name!r}")
    place, help = PUBLIC[name]
    module, _, path = place.partition(":")
    if sys._getframe(1).f_globals.get("__name__") != "importlib._bootstrap":  # which asks before `from` does
        warn_of_old(f"`pcbatch.{name}` is a name of the earlier release", help=help)
    return attrgetter(path)(import_module(module))


def with_new_names(given: Mapping[str, Any], now: Options) -> dict[str, Any]:
    """Return options without those of the earlier release, for each of which a warning is given.

    Args:
        given: options by name, as a user has written them.
        now: the options that they change.

    Raises:
        UsageError: a name that no release has, or one of the earlier release beside the option that has its place.
    """
    new = {name: value for name, value in given.items() if name in Options.__dataclass_fields__}
    old = {name: value for name, value in given.items() if name not in new}
    for name in old:
        if name not in (*OF_PLAN, *OF_NUMBERS, GRAPHS):
            raise _unknown(name)
    if of_plan := {name: value for name, value in old.items() if name in OF_PLAN}:
        _refuse_both("plan", of_plan, new)
        new["plan"] = _warned_plan(of_plan, now.plan)
    if of_numbers := {name: value for name, value in old.items() if name in OF_NUMBERS}:
        _refuse_both("numbers", of_numbers, new)
        new["numbers"] = _warned_numbers(of_numbers, now.numbers)
    if GRAPHS in old:
        warn_of_old(f"`{GRAPHS}` is no option any more: it is a flag of XLA", help=HELP_GRAPHS)
    return new


def _unknown(name: str) -> Exception:
    known = {option: option for option in Options.__dataclass_fields__}
    of_plan = {field: f"plan=pcbatch.Plan({field}=...)" for field in Plan.__dataclass_fields__}
    near = difflib.get_close_matches(name, known | of_plan, 1)
    meant = f"did you mean `{(known | of_plan)[near[0]]}`? " if near else ""
    return usage("PCB401", f"unknown option {short(name)}", help=f"{meant}choose from {', '.join(known)}")


def _refuse_both(option: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    if option in new:
        title = f"`{next(iter(old))}` and `{option}` are both given, and the first is a part of the second"
        raise usage("PCB401", title, help=f"leave `{next(iter(old))}` out, and say it in `{option}`")


def _warned_plan(old: Mapping[str, Any], now: Plan) -> Plan:
    notes = []
    if old.get("emitter") == "mask":
        old, notes = {**old, "emitter": "guard"}, ['`emitter="mask"` is gone, since no program was faster by it']
    plan = replace(now, **old)
    for name in old:
        warn_of_old(f"`{name}` is a field of the option `plan` now", *notes, help=f"write `plan={plan}`")
    return plan


def _warned_numbers(old: Mapping[str, Any], now: str | Numbers) -> str | Numbers:
    mixed = replace(now if isinstance(now, Numbers) else NUMBERS[now], **old)
    chosen = next((name for name, numbers in NUMBERS.items() if numbers == mixed), None)
    help = f'write `numbers="{chosen}"`'
    if chosen is None:
        help = 'write `numbers="jax"`, with which integers wrap around and `math` gives NaN, or leave it out'
    for name in old:
        warn_of_old(f"`{name}` is a part of the option `numbers` now", help=help)
    return mixed if chosen is None else chosen
