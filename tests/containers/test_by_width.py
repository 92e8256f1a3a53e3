"""Computations in two forms: JAX's transformations use the first, a program of one lane the other; both are equal."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.data.by_width import by_width, by_width_p
from pcbatch.data.checks import collecting, require
from pcbatch.data.sequences import moves
from pcbatch.lowering.jaxpr_passes.of_width import _Together

LANES, STEPS = 48, 24


def doubled(x: Any, y: Any) -> Any:
    return {"a": 2 * x + y}


def tripled(x: Any, y: Any) -> Any:
    return {"a": 3 * x + y}


def both(x: Any, y: Any) -> Any:
    return by_width(doubled, tripled)(x, y)["a"]


class TestForms:
    def test_what_jax_does_with_it_is_the_first_form(self) -> None:
        x = jnp.arange(3.0)
        assert jax.jit(both)(x, 1.0).tolist() == [1.0, 3.0, 5.0]
        assert jax.vmap(both, (0, None))(x, 1.0).tolist() == [1.0, 3.0, 5.0]
        assert jax.grad(lambda x: jnp.sum(both(x, x)))(x).tolist() == [3.0] * 3
        assert jax.jvp(both, (x, x), (x, x))[1].tolist() == [0.0, 3.0, 6.0]

    def test_known_values_are_computed_at_once(self) -> None:
        assert by_width(doubled, tripled)(2, 1) == {"a": 5}

    def test_one_equation_holds_both(self) -> None:
        closed = jax.make_jaxpr(both)(1.0, 2.0)
        (eqn,) = closed.eqns
        assert eqn.primitive is by_width_p
        assert jex.jaxpr_as_fun(eqn.params["alone"])(1.0, 2.0) == [5.0]

    def test_a_form_with_checks_is_none(self) -> None:
        def checked(x: Any) -> Any:
            require(x > 0, "ValueError", "no")
            return x

        with collecting() as checks:
            closed = jax.make_jaxpr(lambda x: by_width(checked, checked)(x))(1.0)
        assert len(checks) == 1 and [eqn.primitive.name for eqn in closed.eqns] != ["pcbatch_by_width"]

    def test_values_that_a_form_reads_are_operands(self) -> None:
        def both(x: Any, y: Any, z: Any) -> Any:
            return by_width(lambda x: x + y, lambda x: y + x * z / z)(x)

        closed = jax.make_jaxpr(both)(1.0, 2.0, 3.0)
        assert [eqn.primitive.name for eqn in closed.eqns] == ["pcbatch_by_width"]
        assert jex.jaxpr_as_fun(closed)(1.0, 2.0, 3.0) == [3.0]
        (eqn,) = closed.eqns
        given = dict(zip(closed.jaxpr.invars, (1.0, 2.0, 3.0), strict=True))
        assert jex.jaxpr_as_fun(eqn.params["alone"])(*(given[v] for v in eqn.invars)) == [3.0]
        assert jax.vmap(both)(jnp.arange(3.0), jnp.ones(3), jnp.ones(3)).tolist() == [1.0, 2.0, 3.0]


class TestTogether:
    def test_equations_take_the_place_of_forms_also_in_loops_and_forms(self) -> None:
        table = np.arange(40.0)

        def looked(x: Any, k: Any) -> Any:
            return by_width(doubled, tripled)(x, jnp.asarray(table)[k])["a"]

        def fn(x: Any, k: Any) -> Any:
            x = by_width(looked, looked)(x, k)
            return jax.lax.fori_loop(0, 3, lambda i, x: looked(x, i), x)

        closed = jax.make_jaxpr(fn)(1.0, 2)
        chosen = _Together().inner(closed)
        assert "by_width" in str(closed) and "by_width" not in str(chosen)
        assert jex.jaxpr_as_fun(chosen)(1.0, 2) == jex.jaxpr_as_fun(closed)(1.0, 2)


# Programs that do random things to a container, which both ways of running must do as Python does them.


def on_heap(ops: Any, values: Any) -> Any:
    heap = [(0, 0)]
    found = 0
    for k in range(len(ops)):
        item = (values[k], k)
        if ops[k] == 0 and len(heap) > 0:
            found = found * 3 + heapq.heappop(heap)[1]
        elif ops[k] == 1 and len(heap) > 0:
            found = found * 3 + heapq.heapreplace(heap, item)[1]
        elif ops[k] == 2:
            found = found * 3 + heapq.heappushpop(heap, item)[1]
        elif ops[k] == 3:
            heap.reverse()
            heapq.heapify(heap)
        else:
            heapq.heappush(heap, item)
        found %= 1009
    return found, heap


def on_list(ops: Any, values: Any) -> Any:
    xs = [7, 8, 9]
    for k in range(len(ops)):
        i, j = values[k], values[k] + ops[k]
        if ops[k] == 0 and len(xs) > 0:
            xs.append(xs.pop(i % len(xs)))
        elif ops[k] == 1:
            xs.insert(i - 4, k)
        elif ops[k] == 2:
            del xs[i:j]
        elif ops[k] == 3:
            xs[i:j] = xs[1:6]
        elif ops[k] == 4:
            xs.extend(xs[i - 3 :])
            xs = xs[:20]
        elif i in xs:
            xs.remove(i)
        else:
            xs.append(i)
    return xs


def on_dict(ops: Any, values: Any) -> Any:
    found = {(3, 0): 1}
    total = 0
    for k in range(len(ops)):
        key = (values[k], ops[k] % 2)
        if ops[k] == 0:
            total += found.pop(key, 100)
        elif ops[k] == 1 and key in found:
            del found[key]
        else:
            found[key] = found.get(key, 0) + k
    return total, list(found.items())


def on_text(text: Any) -> Any:
    out = ""
    for word in text.split():
        out += word[1:] + word[:1] + "-"
    parts = out.split("-")
    return "+ ".join(parts) + out.lstrip("ab")[2:5]


@pytest.mark.parametrize("emitter", ["scalar", "guard"])
def test_random_texts(emitter: Any) -> None:
    drawn = np.random.default_rng(2)
    texts = ["".join("ab  c"[k] for k in drawn.integers(0, 5, n)) for n in range(18)]
    found = pcbatch.batch(on_text, plan=pcbatch.Plan(emitter=emitter))(pcbatch.ragged(texts))
    assert found.tolist() == [on_text(text) for text in texts]


@pytest.mark.parametrize("emitter", ["scalar", "guard"])
@pytest.mark.parametrize("function", [on_heap, on_list, on_dict])
def test_random_uses(function: Callable[..., Any], emitter: Any) -> None:
    drawn = np.random.default_rng(1)
    ops, values = drawn.integers(0, 6, (LANES, STEPS)), drawn.integers(0, 9, (LANES, STEPS))
    lists = [[row.tolist() for row in part] for part in (ops, values)]
    found = pcbatch.batch(function, plan=pcbatch.Plan(emitter=emitter))(*map(pcbatch.ragged, lists))
    wanted = [function(*row) for row in zip(*lists, strict=True)]
    if function is on_list:
        assert found.tolist() == wanted
    else:
        assert found[0].tolist() == [first for first, _ in wanted]
        assert [[tuple(map(_plain, item)) for item in row] for row in found[1].tolist()] == [
            [tuple(map(_plain, item)) for item in row] for _, row in wanted
        ]


def _plain(part: Any) -> Any:
    return tuple(part) if isinstance(part, list | tuple) else part


@pytest.mark.parametrize("size", [3, 8, 9, 30])
def test_rows_are_moved_alike(size: int) -> None:
    """Each place and number of rows, in columns of few rows and of more than are moved at a time."""
    columns = {"a": jnp.arange(size), "b": jnp.arange(3.0 * size).reshape(size, 3)}
    other = {"a": -jnp.arange(size), "b": -jnp.ones((size, 3))}

    def check(move: Callable[..., Any], used: Any, *args: int) -> None:
        closed = jax.make_jaxpr(lambda *args: jax.tree.leaves(move(columns, *args)))(*args)
        (eqn,) = (eqn for eqn in closed.eqns if eqn.primitive is by_width_p)
        ins = [columns, args] if move is not replaced else [columns, args[:3], other, args[3:]]
        forms = (jex.jaxpr_as_fun(eqn.params[form])(*jax.tree.leaves(ins)) for form in ("together", "alone"))
        for together, alone in zip(*forms, strict=True):
            np.testing.assert_array_equal(together[:used], alone[:used], f"{move.__name__}{args}")

    def replaced(columns: Any, n: Any, at: Any, removed: Any, m: Any) -> Any:
        return moves.replaced(columns, n, at, removed, other, m)

    drawn = np.random.default_rng(size)
    for _ in range(8):
        n = int(drawn.integers(1, size))
        at = int(drawn.integers(0, n + 1))
        removed = int(drawn.integers(0, n - at + 1))
        m = int(drawn.integers(0, size - n + removed + 1))
        check(moves.closed, n - removed, n, at, removed)
        check(moves.opened, n, n, at)
        check(moves.part, removed, at, removed)
        replaced.__name__ = "replaced"
        check(replaced, n - removed + m, n, at, removed, m)
