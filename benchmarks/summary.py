"""One JSON, one Markdown table and the pictures of all that was measured."""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.common import Curve
from benchmarks.jobs import ROOT

JSON, MARKDOWN = "benchmarks.json", "benchmarks.md"


def revision() -> str | None:
    """The commit that was measured, where git knows it; with `+` if files have changed since."""
    try:
        shown = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return shown.stdout.strip()


def summary(jobs: Sequence[dict[str, Any]], quick: bool, commit: str | None) -> dict[str, Any]:
    """Everything, and how many goals were met."""
    rows = [row for job in jobs for row in job.get("rows", ())]
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "revision": commit,
        "quick": quick,
        "seconds": round(sum(job["seconds"] for job in jobs), 1),
        "goals": {"met": sum(row["met"] is True for row in rows), "missed": sum(row["met"] is False for row in rows)},
        "jobs": list(jobs),
    }


def markdown(found: dict[str, Any]) -> str:
    """A table for each job."""
    goals = found["goals"]
    kind = "quick run" if found["quick"] else "full run"
    lines = [
        "# Benchmarks",
        "",
        f"{kind} of {found['date']}, revision {found['revision']}, {found['seconds']:.0f} s: "
        f"{goals['met']} goals met, {goals['missed']} missed.",
    ]
    for job in found["jobs"]:
        lines += ["", f"## {job['name']}", "", f"`{job['command']}`, {job['seconds']:.0f} s", ""]
        lines += ["```", job["error"], "```"] if "error" in job else _table(job)
    return "\n".join(lines) + "\n"


def _table(job: dict[str, Any]) -> list[str]:
    where = ", ".join(f"{key} {value}" for key, value in (job["machine"] | job["versions"]).items())
    head = [f"{job['title']}; {where}.", "", "| | value | goal | against |", "|---|---|---|---|"]
    return head + [_line(row) for row in job["rows"]]


def _line(row: dict[str, Any]) -> str:
    goal = ""
    if row["goal"] is not None:
        goal = f"{'>=' if row['at_least'] else '<='} {row['goal']:.4g}: {'met' if row['met'] else '**missed**'}"
    against = "" if row["baseline"] is None else f"{row['baseline']}: {row['against']:.4g}"
    return f"| {row['name']} | {row['value']:.4g} {row['unit']} | {goal} | {against} |"


def write(found: dict[str, Any], folder: Path) -> list[Path]:
    """The files, in a folder that is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    curves = [Curve(**curve) for job in found["jobs"] for curve in job.get("curves", ())]
    (folder / JSON).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    (folder / MARKDOWN).write_text(markdown(found), encoding="utf-8")
    return [folder / JSON, folder / MARKDOWN, *plots.draw(curves, folder)]
