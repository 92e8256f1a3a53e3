"""Learned policies as JSON: one object with a format, a version and the fields of the policy, all of them checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.runtime.learned.encodings import ENCODINGS

FORMAT, VERSION = "pcbatch learned schedule", 1
MACHINES = ("tasks", "lanes")


def to_json(fields: Mapping[str, Any]) -> str:
    """Return the text of a file."""
    return json.dumps({"format": FORMAT, "version": VERSION, **fields}, indent=1) + "\n"


def of_json(text: str, path: str) -> Mapping[str, Any]:
    """Return the fields of a policy from the text of a file.

    Raises:
        UsageError: The text is no policy, or one of another version. (PCB426)
    """
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _refused(f"{short(path)} holds no learned schedule", "give a file that `policy.save(path)` has written")
    if found.get("version") != VERSION:
        title = f"{short(path)} holds a learned schedule of version {short(found.get('version'))}, not {VERSION}"
        raise _refused(title, "learn it again with `pcbatch.learn_schedule`")
    if not _is_whole(found):
        raise damaged(path)
    return found


def damaged(path: str) -> UsageError:
    """Return the error about a file whose fields are not those of a policy."""
    return _refused(f"the learned schedule in {short(path)} is damaged", "learn it again, or copy the file again")


def _is_whole(found: Mapping[str, Any]) -> bool:
    """Whether the fields have the types of a policy, and every number is one of its blocks."""
    labels, expensive, tables = (found.get(key) for key in ("labels", "expensive", "tables"))
    if not (isinstance(labels, list) and labels and all(isinstance(label, str) for label in labels)):
        return False
    if not (_are_blocks(expensive, labels) and isinstance(tables, list) and found.get("machine") in MACHINES):
        return False
    if not (
        all(isinstance(found.get(key), str) for key in ("source", "blocks"))
        and isinstance(found.get("summary"), dict | None)
    ):
        return False
    return all(_is_table(table, labels) for table in tables)


def _is_table(table: object, labels: list[str]) -> bool:
    if not (isinstance(table, list) and len(table) == 3 and table[0] in ENCODINGS):
        return False
    _, states, actions = table
    if not (_are_blocks(actions, labels) and isinstance(states, list) and len(states) == len(actions)):
        return False
    return all(
        isinstance(state, list) and len(state) == len(labels) and all(_is_number(x, len(labels) + 2) for x in state)
        for state in states
    )


def _are_blocks(numbers: object, labels: list[str]) -> bool:
    return isinstance(numbers, list) and all(_is_number(k, len(labels)) for k in numbers)


def _is_number(value: object, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < end


def _refused(title: str, help: str) -> UsageError:
    return UsageError(Diagnostic("PCB426", title, helps=(help,)))
