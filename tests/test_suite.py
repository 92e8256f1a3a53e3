"""The report of `make test`."""

from __future__ import annotations

from typing import Any

from tools.suite import lines


def test_the_report_names_what_falls_short() -> None:
    def file(percent: float, missing: list[int]) -> dict[str, Any]:
        return {"summary": {"percent_covered": percent}, "missing_lines": missing}

    files = {"a.py": file(100.0, []), "b.py": file(94.96, [3, 4, 5, 9, 11, 12]), "c.py": file(95.0, [7])}
    found = {"files": files, "totals": {"percent_covered": 97.25, "num_statements": 320}}
    assert lines(found) == [
        "files below 95 %:",
        "  b.py: 95.0 %, not run: 3-5, 9, 11-12",
        "coverage: 97.2 % of 320 statements in 3 files",
    ]
    del files["b.py"]
    assert lines(found) == ["coverage: 97.2 % of 320 statements in 2 files"]
