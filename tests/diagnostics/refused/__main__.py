"""Print which of the helps work."""

import jax

from tests.diagnostics.refused import ROWS
from tests.diagnostics.refused.row import Row


def fault(row: Row) -> str:
    """Say why a help does not work; empty if it does."""
    try:
        codes, helps = row.refusal()
        if row.code not in codes or not any(row.help in help for help in helps):
            return f"refused with {codes}: {helps}"
        return str(row.differences() or "")
    except BaseException as error:  # what does not run at all is counted, too
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    faults = {row.name: text for row in ROWS if (text := fault(row))}
    jax.clear_caches()
    for name, text in faults.items():
        print(f"{name}: {text}\n")
    print(f"{len(ROWS) - len(faults)} of {len(ROWS)} helps work")
