"""Options in which the fields of a plan are given by their names, for tests that go over many of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pcbatch

FIELDS = frozenset(pcbatch.Plan.__dataclass_fields__)


def planned(**options: Any) -> dict[str, Any]:
    """Return options of `pcbatch.batch` whose plan has these fields."""
    return changed(pcbatch.Plan(), options)


def replanned(f: Any, **options: Any) -> Any:
    """Return a batched function under other options and with other fields of its plan, which keeps the rest."""
    return f.with_options(**changed(f.options.plan, options))


def changed(plan: pcbatch.Plan, options: dict[str, Any]) -> dict[str, Any]:
    """Return options with a plan in place of the fields of one."""
    fields = {name: value for name, value in options.items() if name in FIELDS}
    rest = {name: value for name, value in options.items() if name not in FIELDS}
    return rest | {"plan": replace(plan, **fields)} if fields else rest
