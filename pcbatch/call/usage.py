"""The error of a call whose arguments or options are wrong."""

from __future__ import annotations

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import UsageError


def usage(code: str, title: str, *notes: str, help: str = "") -> UsageError:
    """Make an error about how the API was used."""
    return UsageError(Diagnostic(code, title, notes=notes, helps=(help,) if help else ()))
