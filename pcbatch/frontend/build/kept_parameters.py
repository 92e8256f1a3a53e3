"""Parameters that a function changes in place for its callers, and assigns as well: the caller's object is kept.

def step(p):                       func @step(p) -> (r, p):
    p.n += 1                           t0 = p
    p = p.next              ==>        p = augment_item(p, ...); p = { p.next }; p = augment_item(p, ...)
    p.n += 1                           p = t0; return

A list or a dict has two names meanwhile. Where it changes, the check of ownership asks for a link (`build/links.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import gast

from pcbatch.frontend.build.builder import Builder


def keep_parameters(b: Builder, changed: Sequence[str]) -> None:
    """Build copies of those of the parameters `changed` that the body assigns; they are results of the function."""
    own = {name.id: name for name in gast.walk(b.unit.node.args) if isinstance(name, gast.Name)}
    for name in changed:
        if name in own and name not in b.unit.rebound and _is_assigned(b, name):
            b.keep(name, own[name])


def _is_assigned(b: Builder, name: str) -> bool:
    """Whether the body assigns a variable, other than by `x += v`, which changes a list in place."""
    parts = [part for statement in b.unit.body for part in gast.walk(statement)]
    augmented = {id(part.target) for part in parts if isinstance(part, gast.AugAssign)}
    names = (part for part in parts if isinstance(part, gast.Name) and id(part) not in augmented)
    return any(part.id == name and isinstance(part.ctx, gast.Store) for part in names)
