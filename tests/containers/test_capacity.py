"""The growth of room: by four for containers of numbers, by two where each of as many holds as many."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.unsized


@pcbatch.batch
def flat(n):
    xs = []
    for k in range(n):
        xs.append(k)
    return sum(xs), xs


@pcbatch.batch
def nested(n):
    rows = []
    for k in range(n):
        row = []
        for j in range(3):
            row.append(k * j)
        rows.append(row)
    total = 0
    for row in rows:
        total += sum(row)
    return total, rows


@pytest.mark.together
@pytest.mark.parametrize(("f", "room"), [(flat, 128), (nested, 64)])
def test_room_for_a_few_more(f, room) -> None:
    n = jnp.array([3, 40])
    totals, _ = f(n)
    assert totals.tolist() == [f.plain(int(k))[0] for k in n]
    types = {tuple(map(int, shape)) for shape in _shapes(f.lower(n).as_text("opt"))}
    assert any(room in shape for shape in types) and not any(2 * room in shape for shape in types)


def _shapes(text: str) -> list[tuple[str, ...]]:
    found = [part.split("]")[0] for part in text.split("[")[1:]]
    return [tuple(part.split(",")) for part in found if part and all(np.char.isdigit(part.split(",")))]
