"""The door of the rules: what is refused and why, constants, the table."""

from __future__ import annotations

from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pcbatch.runtime.kernel.rules import (
    FAMILIES,
    RULES,
    Unsupported,
    check,
    evaluate,
    hoisted,
    logical_shape,
    padded_shape,
    registry,
)
from tests.runtime.kernel.arrays import floats
from tests.runtime.kernel.kernels import kernel_of

pytestmark = pytest.mark.share(16)

SQUARE = np.eye(3, dtype=np.float32)
LARGE = "an array of 4194304 elements, where a kernel holds 1048576 at most"
REFUSED: dict[str, tuple[Any, str, str]] = {
    "cholesky": (lambda x: jnp.linalg.cholesky(x), "cholesky", "it factorises a matrix"),
    "solve": (lambda x: jnp.linalg.solve(x, x[0]), "lu", "it factorises a matrix"),
    "triangular": (
        lambda x: jax.scipy.linalg.solve_triangular(x, x[0]),
        "triangular_solve",
        "it solves linear equations",
    ),
    "complex": (lambda x: lax.complex(x, x).real, "complex", "values of dtype complex64"),
    "fourier": (lambda x: jnp.fft.fft(x).real, "convert_element_type", "values of dtype complex64"),
    "host": (
        lambda x: jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((3, 3), np.float32), x),
        "pure_callback",
        "it calls the host",
    ),
    "windows": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"),
        "reduce_window_max",
        "it is a convolution or a sum over windows",
    ),
    "short": (lambda x: x.astype(jnp.float8_e4m3fn), "convert_element_type", "values of dtype float8_e4m3fn"),
    "large": (lambda x: jnp.zeros((2000, 2000)) + x[0, 0], "broadcast_in_dim", LARGE),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    fn, primitive, reason = REFUSED[name]
    first = check(jax.make_jaxpr(fn)(SQUARE).jaxpr)[0]
    assert (first.primitive, first.reason) == (primitive, reason)
    assert "test_rules_door.py" in first.source
    assert str(first).startswith(f"`{primitive}` has no form in a kernel: {reason}")


def test_prints_are_refused() -> None:
    refused = check(jax.make_jaxpr(lambda x: jax.debug.print("{}", x) or x)(1.0).jaxpr)
    assert [u.reason for u in refused] == ["it calls the host"]


def test_all_of_them_are_listed() -> None:
    """Also those inside loops, branches and calls, each once."""

    def fn(x: Any) -> Any:
        x = lax.fori_loop(0, 3, lambda i, c: jnp.linalg.cholesky(c), x)
        x = lax.cond(x[0, 0] > 0, jax.jit(jnp.linalg.cholesky), lambda x: x, x)
        return lax.scan(lambda c, a: (c, jnp.fft.fft(a).real), x, x)

    names = [u.primitive for u in check(jax.make_jaxpr(fn)(SQUARE).jaxpr)]
    assert names.count("cholesky") == 2
    assert "fft" in names


def test_evaluation_raises_what_the_check_says() -> None:
    closed = jax.make_jaxpr(jax.jit(lambda x: jnp.linalg.cholesky(x) + 1))(SQUARE)
    (said,) = check(closed.jaxpr)
    with pytest.raises(Unsupported) as raised:
        evaluate(closed.jaxpr, closed.consts, [jnp.zeros((4, 4))])
    assert (raised.value.primitive, raised.value.reason) == (said.primitive, said.reason)


def test_unknown_primitives_are_refused() -> None:
    closed = jax.make_jaxpr(lambda x: lax.igamma(x, x))(1.0)
    assert [u.reason for u in check(closed.jaxpr)] == ["there is no rule for it"]


def test_nothing_to_refuse() -> None:
    closed = jax.make_jaxpr(lambda x: jnp.sort(x)[::-1].sum())(floats(5))
    assert check(closed.jaxpr) == []


def test_arrays_are_lifted_once() -> None:
    table, other = jnp.asarray(floats(5)), np.arange(5, dtype=np.float32)

    def fn(x: Any) -> Any:
        y = jax.jit(lambda x: x * table)(x)
        y = lax.fori_loop(0, 3, lambda i, c: c + table + other, y)
        return lax.cond(x[0] > 0, lambda y: y + other, lambda y: y, y)

    closed = jax.make_jaxpr(fn)(floats(5))
    jaxpr, consts = hoisted(closed)
    assert [np.asarray(c).tolist() for c in consts] == [table.tolist(), other.tolist()]
    assert len(jaxpr.constvars) == 2
    assert [v.aval.shape for v in jaxpr.invars] == [(5,)]
    assert _inner_constants(jaxpr) == []
    want = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, floats(5))
    found = jax.core.eval_jaxpr(jaxpr, consts, floats(5))
    np.testing.assert_allclose(found[0], want[0], rtol=1e-6)


def test_arrays_of_a_jaxpr_inside() -> None:
    """As older traces and `custom_jvp` leave them; a branch and its loop share one."""
    table, x = jnp.asarray(floats(5)), floats(5)
    inner = jax.make_jaxpr(lambda x: x * table)(x)
    assert inner.consts

    def put_in(eqn: Any) -> Any:
        params = {"jit": "jaxpr", "cond": "branches", "while": "body_jaxpr"}
        if (name := params.get(eqn.primitive.name)) is None:
            return eqn
        value = (inner, inner) if name == "branches" else inner
        return eqn.replace(params={**eqn.params, name: value})

    def fn(x: Any) -> Any:
        return lax.while_loop(
            lambda c: c[0] < 9, lambda c: c, lax.cond(x[1] > 0, jnp.sin, jnp.cos, jax.jit(jnp.exp)(x))
        )

    outer = jax.make_jaxpr(fn)(x)
    closed = jex.ClosedJaxpr(outer.jaxpr.replace(eqns=[put_in(eqn) for eqn in outer.jaxpr.eqns]), outer.consts)
    jaxpr, consts = hoisted(closed)
    assert [np.asarray(c).tolist() for c in consts] == [table.tolist()]
    assert _inner_constants(jaxpr) == []
    assert {eqn.primitive.name for eqn in jaxpr.eqns} >= {"cond", "while"}
    assert check(jaxpr) == []


def _inner_constants(jaxpr: Any) -> list[Any]:
    found = []
    for eqn in jaxpr.eqns:
        for value in eqn.params.values():
            for part in value if isinstance(value, tuple) else [value]:
                if hasattr(part, "consts"):
                    found += [c for c in part.consts if np.ndim(c)] + _inner_constants(part.jaxpr)
    return found


def test_keys_are_lifted_as_words() -> None:
    key = jax.random.key(3)
    jaxpr, consts = hoisted(jax.make_jaxpr(lambda x: x + jax.random.uniform(key))(1.0))
    assert [c.dtype for c in consts] == [np.uint32]
    assert logical_shape(jaxpr.constvars[0].aval) == (2,)


def test_arrays_left_in_place_are_refused() -> None:
    closed = jax.make_jaxpr(lambda x: x + np.arange(5.0, dtype=np.float32))(floats(5))
    with pytest.raises(Unsupported, match="argument"):
        evaluate(closed.jaxpr, [np.asarray(c) for c in closed.consts], [jnp.zeros(8)])


def test_lines_of_users_stay() -> None:
    jaxpr, _ = hoisted(jax.make_jaxpr(lambda x: jnp.linalg.cholesky(x))(SQUARE))
    assert "test_rules_door.py" in check(jaxpr)[0].source


def test_shapes() -> None:
    assert padded_shape((3, 1, 0, 8, 20)) == (4, 1, 1, 8, 32)
    keys = jax.make_jaxpr(lambda k: k)(jax.random.split(jax.random.key(0), 3)).jaxpr.invars[0]
    assert logical_shape(keys.aval) == (3, 2)


def test_the_table() -> None:
    assert len(RULES) > 130
    names = [f.__name__ for f in FAMILIES]
    assert len(set(names)) == len(names)


def test_a_kernel_can_be_built_of_nothing_but_refs() -> None:
    call, inputs, _ = kernel_of(lambda x: x + jnp.arange(5.0), floats(5), interpret=True)
    assert jax.eval_shape(call, *inputs)[0].shape == (8,)


def test_one_rule_for_each_primitive() -> None:
    with pytest.raises(AssertionError, match="sin"):
        registry.rule("sin")(lambda eqn, x: [x])
