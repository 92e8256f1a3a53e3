"""Texts that Python makes while compiling, when a value of the lane has no text yet."""

from __future__ import annotations

from pcbatch.errors import Refusal

OUTSIDE = "keep the number, and make its text outside of the batched function, from the result of each lane"
MIXED = "this value is a bool on some paths and a number on others, so its text is not known"
MIXED_HELPS = ("make the text on each path: `t = str(c)` where `c` is assigned", "write `int(c)` if a number is meant")
EITHER = "this number may be an integer where it is a float on other paths, so its text is not known"
EITHER_HELPS = (
    "give it a float from the beginning, `total = 0.0`, or write `float(x)` if a float is meant",
    'show so many decimal places, which are those of both: `f"{x:.2f}"`',
)
SHOWN = "Tracer("  # begins the text that JAX gives of a value of the lane


def refuse_shown(text: str) -> None:
    """Refuse a text that Python made of a value of the lane, which would be one text for all lanes."""
    if SHOWN in text:
        raise no_text()


def no_text() -> Refusal:
    """Return the refusal of a text of values of a lane."""
    return Refusal(
        "PCB304",
        "this text is made while compiling, when the values of lanes are not known",
        helps=(
            OUTSIDE,
            'to show it, write the f-string where it is shown: `print(f"...")`, `raise ValueError(f"...")`',
            "a choice or a table needs no text: compare the number itself, or use it as an index",
            'of numbers, bools and texts a lane makes text by `str(n)` and by f-strings: `f"{n:5d}"`, `f"{x:.2f}"`',
        ),
    )
