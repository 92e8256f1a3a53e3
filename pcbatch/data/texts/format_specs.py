"""The formats of values: their parts, and widths that a lane says, as in `f"{x:0{n}b}"`."""

from __future__ import annotations

import re
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit
from pcbatch.data.origins import Origin, Tracer, origin_of
from pcbatch.data.texts.text import Text
from pcbatch.data.values import Index, Value
from pcbatch.errors import Refusal

SPEC = re.compile(
    r"(?:(?P<fill>.)?(?P<align>[<>^]))?(?P<sign>[+ -]?)(?P<hash>#?)(?P<zero>0)?(?P<width>\d*)(?P<group>[,_]?)"
    r"(?:\.(?P<most>\d+))?(?P<kind>[bdosxXfFeEgG%]?)"
)
SOME = "1"  # in place of a width that a lane says
DIGITS = "choose among constant numbers of digits: `f'{x:.1f}' if p == 1 else f'{x:.2f}'`"
HELP = "write `text.rjust(n)`, `ljust`, `center` or `zfill` for a width of the lane"
NEGATIVE = "a width of a format is negative"


def parts_of(spec: Value) -> tuple[re.Match[str] | None, Index]:
    """Return the parts of a format, None where it is none that lanes know, and its width, 0 where it has none.

    Raises:
        Refusal: it is a text of the lane of which not just the width is the lane's.
    """
    if isinstance(spec, str):
        parts = SPEC.fullmatch(spec)
        return parts, 0 if parts is None else int(parts["width"] or 0)
    before, width, after = getattr(spec, "written", None) or ("", None, "")
    parts = SPEC.fullmatch(before + SOME + after)
    if width is None or parts is None or parts.span("width") != (len(before), len(before) + 1):
        helps = (DIGITS,) if before.endswith(".") else (HELP,)
        raise Refusal("PCB304", "the format of this value differs between lanes", helps=helps)
    if parts["zero"] and parts["group"]:
        raise Refusal("PCB304", "a width that differs between lanes, of zeros with marks between them", helps=(HELP,))
    limit(width >= 0, NEGATIVE)
    return parts, jnp.maximum(width, 0).astype(np.int32)


def note_number(whole: Text, parts: Sequence[Value]) -> None:
    """Note in the text of an f-string that it is a number of the lane between known texts, so that it may be a format
    with that width; `parts` are those of `template`."""
    numbers = [k for k, part in enumerate(parts) if not isinstance(part, str)]
    if len(numbers) == 1 and isinstance(parts[numbers[0]], tuple):
        value, conversion, spec = parts[numbers[0]]
        whole_number = isinstance(value, Tracer) and value.shape == () and jnp.issubdtype(value.dtype, jnp.integer)
        if whole_number and conversion == -1 and not isinstance(spec, Text) and not spec:
            if origin_of(value) is not Origin.MIXED:
                whole.written = "".join(parts[: numbers[0]]), value, "".join(parts[numbers[0] + 1 :])
