"""`pcbatch check`: the mistakes of all batched functions of a file, without running any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pcbatch.api.batched import Batched
from pcbatch.api.dump import lowered
from pcbatch.cli.parse_arguments import ArgType, annotated_types, object_of_method
from pcbatch.diagnostics.diagnostic import Diagnostic, render
from pcbatch.errors import PcbatchError

LANES = 2  # more than one, so that an axis of lanes is seen where there should be none


@dataclass(frozen=True, slots=True)
class Report:
    """A line for every function without mistakes, and the mistakes of the others, as text."""

    fine: tuple[str, ...]
    mistakes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines of the functions that are fine."""
        return "".join(f"{line}\n" for line in self.fine)


def check(functions: Sequence[tuple[str, Batched[..., Any]]], types: Sequence[Mapping[str, ArgType] | None]) -> Report:
    """Check every function; a mistake in a function that several of them call is reported once."""
    fine: list[str] = []
    all_mistakes: dict[Diagnostic, None] = {}  # as an ordered set
    for (name, batched), known in zip(functions, types, strict=True):
        mistakes, helpers = _mistakes(batched, known)
        all_mistakes.update(dict.fromkeys(mistakes))
        if not mistakes:
            types_text = ", ".join(f"{parameter}: {_text(type_)}" for parameter, type_ in (known or {}).items())
            how = f"for {types_text}" if known else _untyped(batched)
            fine.append(f"{name}: ok" if known == {} else f"{name}: ok ({how})")
            fine += [f"  compiled helpers: {line}" for line in helpers]
    return Report(tuple(fine), tuple(render(diagnostic) for diagnostic in all_mistakes))


def _mistakes(
    batched: Batched[..., Any], types: Mapping[str, ArgType] | None
) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """All mistakes of a function, each once, and the functions that are compiled along with it."""
    mistakes, helpers = _errors(batched, None)  # without types, lowering looks at every line, reached or not
    if types is not None:
        more, helpers = _errors(batched, types)
        mistakes = tuple(dict.fromkeys([*mistakes, *more]))
    return mistakes, helpers


def _errors(
    batched: Batched[..., Any], types: Mapping[str, ArgType] | None
) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    try:
        return (), tuple(map(str, lowered(batched, types, LANES).stages.helpers))
    except PcbatchError as error:
        return error.diagnostics, ()


def _text(type_: ArgType) -> str:
    return f"({', '.join(map(_text, type_))})" if isinstance(type_, tuple) else str(type_)


def _untyped(batched: Batched[..., Any]) -> str:
    """The reason why types are not checked, and how to have them checked."""
    if object_of_method(batched.fn) is not None:
        return "types not checked: the object of a method is not known here"
    code = batched.fn.__code__
    static = batched.options.static_argnames
    known = annotated_types(batched.fn)
    names = [p for p in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if p not in (*static, *known)]
    name = names[0] if names else "x"
    return f'types not checked: give --arg {name}=TYPE, or annotate `{name}`, as int, float, bool or "i32[3]"'
