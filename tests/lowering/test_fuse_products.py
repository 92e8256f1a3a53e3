"""Products with one operand become one, on programs in text form and on functions against the plain function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.errors import InternalError
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verifier import verify
from pcbatch.lowering.jaxpr_passes import fuse_products
from pcbatch.lowering.left_out import without
from pcbatch.lowering.typing.trace import JaxprFn
from tests.ir.samples import stack
from tests.lowering.typed import typed
from tests.oracles.interpret_stack import interpret_stack

RNG = np.random.default_rng(0)


def matrix(*shape: int) -> Any:
    """Random numbers that keep vectors about as long as they are."""
    return jnp.asarray(RNG.normal(size=shape) * shape[-1] ** -0.5, jnp.float32)


LOOP = """pcir 1 stack
program entry=bb0 in=(v, w, x, n) out=(x) {
  v, w: f32[9,9] shared   x: f32[9] reg   n: i32[] reg   a, b: f32[9] temp   more: bool[] temp
bb0:
  more = { n > 0 }
  branch more, bb1, return
bb1:
%s
  update n = { n - 1 }
  more = { n > 0 }
  branch more, bb1, return
}
"""


def fused(body: str) -> StackProgram:
    """The program with a loop of these operations after the pass, which leaves its results as they were."""
    old = typed(stack(LOOP % body))
    new = fuse_products.run(old)
    assert verify(old) == () == verify(new), print_program(new)
    args = (matrix(9, 9), matrix(9, 9), matrix(9), np.int32(3))
    np.testing.assert_allclose(interpret_stack(new, args)[0][0], interpret_stack(old, args)[0][0], rtol=1e-5)
    return new


def products(program: StackProgram) -> int:
    """The matrix products in all blocks."""
    prims = [op for b in program.blocks for op in b.ops if isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn)]
    eqns = [eqn for op in prims for eqn in op.expr.fn.closed.jaxpr.eqns]  # type: ignore[union-attr]
    return sum(eqn.primitive.name == "dot_general" for eqn in eqns)


def test_products_of_two_primitives_become_one() -> None:
    """The weights are put together in the prologue."""
    new = fused("  a = { v @ x }\n  b = { jnp.tanh(w @ x) }\n  update x = { jnp.sin(a) + b }")
    text = print_program(new)
    assert products(new) == 1
    assert "weights.t0 = { jnp.concatenate([v.T, w.T], 1) }" in text
    assert "product.t0, product.t1 = { jnp.split(x @ weights.t0, (9,)) }" in text
    assert "  a = product.t0\n" in text


def test_weights_on_either_side() -> None:
    """What is right of the vector stays as it lies."""
    text = print_program(fused("  update x = { jnp.tanh(v @ x) - x @ w }"))
    assert "weights.t0 = { jnp.concatenate([v.T, w], 1) }" in text


def test_an_operand_that_is_written_twice() -> None:
    """It is computed once, before the product."""
    new = fused("  a = { v @ (x * 2) }\n  b = { w @ (x * 2) + x * 2 }\n  update x = { jnp.sin(a + b) }")
    assert products(new) == 1
    assert "operand.t0 = { v @ (x * 2) } reads (x)" in print_program(new)


def test_an_expression_of_a_weight() -> None:
    """It is computed ahead."""
    new = fused("  a = { (v - w).T @ x }\n  b = { w @ x }\n  update x = { jnp.sin(a + b) }")
    assert products(new) == 1
    assert "weight.t0 = { (v - w).T @ x } reads (v, w)" in print_program(new)


def test_an_operand_that_changes_in_between_is_another() -> None:
    """The name is the same, the value is not."""
    new = fused("  a = { v @ x }\n  update x = { x + 1 }\n  b = { w @ x }\n  update x = { jnp.sin(a + b) }")
    assert products(new) == 2


def test_a_product_of_a_product() -> None:
    """The second waits for the first; both are groups of their own."""
    new = fused("  update x = { jnp.tanh(v @ (v @ x + w @ x) + w @ (v @ x + w @ x)) }")
    assert products(new) == 2
    assert print_program(new).count("jnp.concatenate") == 1  # the same weights


def test_equal_products_are_one() -> None:
    """And a third with another weight goes with them."""
    assert products(fused("  a = { v @ x }\n  b = { v @ x + w @ x }\n  update x = { jnp.sin(a + b) }")) == 1


def test_what_stays() -> None:
    """A single small product, and products of several operands with one weight."""
    for body in ("  update x = { jnp.tanh(v @ x) }", "  update x = { jnp.tanh(v @ x + v @ jnp.sin(x)) }"):
        old = typed(stack(LOOP % body))
        assert fuse_products.run(old) is old


def test_a_block_that_is_visited_once_stays() -> None:
    """Putting weights together costs as much as it gains there."""
    looping = LOOP % "  a = { v @ x }\n  b = { w @ x }\n  update x = { a + b }"
    text = looping.replace("branch more, bb1, return\n}", "return\n}")
    old = typed(stack(text))
    assert fuse_products.run(old) is old


def loop(v: Any, w: Any, xs: Any, n: Any) -> Any:
    """A recurrent network with two gates."""
    h = jnp.zeros(xs.shape[1])
    for t in range(n):
        gate = jax.nn.sigmoid(v @ xs[t] + v @ h)
        h = gate * h + (1 - gate) * jnp.tanh(w @ xs[t] + w @ h)
    return h


def tree(v: Any, w: Any, x: Any, n: Any) -> Any:
    """Two calls that may run side by side."""
    if n <= 0:
        return jnp.tanh(v @ x) * (w @ x)
    a = tree(v, w, x * 0.5, n - 1)
    b = tree(v, w, x + 0.25, n - 2)
    return jnp.tanh(v @ (a - b)) + w @ (a - b)


BY_LOOP = (loop, (matrix(9, 9), matrix(9, 9), matrix(4, 6, 9), jnp.array([0, 6, 2, 3], jnp.int32)))
BY_TREE = (tree, (matrix(9, 9), matrix(9, 9), matrix(4, 9), jnp.array([0, 3, 4, 1], jnp.int32)))


@pytest.mark.parametrize("fork", ["never", "always"])
@pytest.mark.parametrize(("fn", "args"), [BY_LOOP, BY_TREE])
def test_lanes_equal_the_plain_function(fn: Callable[..., Any], args: tuple[Any, ...], fork: str) -> None:
    """With the pass and without it, in lanes and by tasks."""
    if fn is loop and fork == "always":
        pytest.skip("it makes no calls")
    v, w, x, n = args
    want = [fn(v, w, x[k], int(n[k])) for k in range(4)]
    f = pcbatch.batch(fn, in_axes=(None, None, 0, 0), plan=pcbatch.Plan(fork=fork))
    np.testing.assert_allclose(f(*args), want, rtol=2e-5, atol=1e-6)
    with without("fuse_products"):
        np.testing.assert_allclose(f.with_options(max_memory=10**9)(*args), want, rtol=2e-5, atol=1e-6)


def test_gradients_of_weights_and_operands() -> None:
    """They go back through the weights that stand together."""
    fn, args = BY_LOOP
    v, w, xs, n = args
    f = pcbatch.batch(fn, in_axes=(None, None, 0, 0), max_tape=32)
    found = jax.grad(lambda v, w, xs: jnp.sum(f(v, w, xs, n) ** 2), (0, 1, 2))(v, w, xs)

    def plain(v: Any, w: Any, xs: Any) -> Any:
        return sum(jnp.sum(loop(v, w, xs[k], int(n[k])) ** 2) for k in range(4))

    for one, other in zip(found, jax.grad(plain, (0, 1, 2))(v, w, xs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_pass_that_is_left_out_must_exist() -> None:
    """A name that is none is an error."""
    with pytest.raises(ValueError, match="no pass 'fuse'"), without("fuse"):
        raise InternalError("not reached")
