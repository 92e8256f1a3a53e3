"""The warning of a name of an earlier release, which its user can replace to the letter."""

from __future__ import annotations

import sys
import warnings

from pcbatch.diagnostics.diagnostic import Diagnostic, render


def warn_of_old(title: str, *notes: str, help: str) -> None:
    """Give a DeprecationWarning at the line of the user's that has called the package."""
    diagnostic = Diagnostic("PCB429", title, notes=notes, helps=(help,))
    warnings.warn("\n" + render(diagnostic, "warning"), DeprecationWarning, stacklevel=frames_of_ours())


def frames_of_ours() -> int:
    """Return the `stacklevel`, for the caller, of the first frame that is not in this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "pcbatch":
        frame, level = frame.f_back, level + 1
    return level
