"""Which cases of a test that is marked `share` a usual run takes, and how many examples of Hypothesis."""

from __future__ import annotations

full = False  # or else a run with `--full`, or of tests that are asked for by name; told before tests are imported


def in_share(number: int, one_in: int, *places: int) -> bool:
    """One of each `one_in` cases in a row (or those of these places), of each row others, so that parameters vary."""
    return (number - number // one_in) % one_in in (places or (0,))


def examples(number: int, usual: int) -> int:
    """Return how many examples Hypothesis draws: this number, and so many in a usual run."""
    return number if full else usual
