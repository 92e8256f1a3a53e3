"""What is told to write for a draw of Python or NumPy draws from the same distribution, with a key."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.diagnostics import impure_calls
from tests.diagnostics.following import CODE, load, refused

pytestmark = pytest.mark.promotion("standard")
HEAD = (
    "import random\nimport numpy as np\n"
    + "import jax\nimport jax.numpy as jnp\nimport pcbatch\nG = np.random.default_rng(0)\n"
)
CALLS = """random.random()
random.uniform(2, 5)
random.randint(1, 6)
random.randrange(4)
random.randrange(2, 4)
random.gauss(3.0, 0.5)
random.gauss()
random.normalvariate(mu=3.0, sigma=0.5)
random.expovariate(4.0)
random.betavariate(2.0, 3.0)
random.gammavariate(2.0, 3.0)
random.choice([1.0, 2.0, 5.0])
np.random.rand()
np.random.rand(3)
np.random.randn(2, 2)
np.random.random(3)
np.random.normal(2.0, 0.5, size=3)
np.random.normal()
np.random.uniform(-1.0, 3.0)
np.random.uniform(high=3.0, size=(2,))
np.random.randint(5)
np.random.randint(2, 5, 3)
np.random.exponential(0.5)
np.random.poisson(3.0)
np.random.binomial(9, 0.25)
np.random.beta(2.0, 3.0)
np.random.gamma(2.0, 3.0)
np.random.choice(5)
np.random.choice([1.0, 4.0], size=3)
np.random.choice([1.0, 4.0], p=[0.2, 0.8])
G.integers(5)
G.integers(low=1, high=4)
G.standard_normal(3)
G.random()""".splitlines()
DRAWS = 2000


def test_they_draw_the_same() -> None:
    random.seed(0)
    np.random.seed(0)
    lines = [f"    r{k} = {call}" for k, call in enumerate(CALLS)]
    results = ", ".join(f"r{k}" for k in range(len(CALLS)))
    module = load("\n".join([HEAD, "@pcbatch.batch", "def f(x):", *lines, f"    return x, {results}", ""]))
    found = refused(module, (jnp.ones(2),))
    told = [CODE.search(fault.helps[1]) for fault in found]
    assert len(told) == len(CALLS)
    spaces = {"jax": jax, "jnp": jnp}
    drawn_at_once = jax.jit(
        jax.vmap(lambda key: [eval(code[1], spaces | {"new_key": lambda: key}) for code in told if code is not None])
    )
    for call, code, drawn in zip(CALLS, told, drawn_at_once(jax.random.split(jax.random.key(0), DRAWS)), strict=True):
        assert code is not None, call
        got = np.asarray(drawn)
        compiled = compile(call, "<call>", "eval")
        want = np.array([eval(compiled, module.names) for _ in range(DRAWS)])
        assert got.shape == want.shape, (call, code[1])
        assert (got.dtype.kind == "f") == (want.dtype.kind == "f"), (call, code[1])
        for measure in (np.mean, np.std):
            np.testing.assert_allclose(measure(got), measure(want), atol=0.12 * np.std(want) + 1e-6, err_msg=code[1])
        if want.dtype.kind == "i" and "poisson" not in call and "binomial" not in call:
            assert set(np.unique(got)) == set(np.unique(want)), (call, code[1])


def test_what_nothing_draws_is_not_told() -> None:
    module = load(f"{HEAD}@pcbatch.batch\ndef f(x):\n    return x + random.triangular(0.0, 1.0)\n")
    (fault,) = refused(module, (jnp.ones(2),))
    assert fault.helps[1].startswith("draw with a function of `jax.random`, for example")


def test_every_draw_has_been_followed() -> None:
    """But for those that give an order of elements, which has no mean to compare."""
    orders = {"shuffle", "sample", "permutation"}
    told = {call.partition("(")[0].rpartition(".")[2] for call in CALLS}
    assert {*impure_calls._PYTHON, *impure_calls._NUMPY} - told - orders == {"random_sample", "ranf"}


PLACES = """
def rolled(new_key, n):
    return 0.0 if n == 0 else jax.random.uniform(new_key()) + rolled(new_key, n - 1)


@pcbatch.batch
def f(n, key):
    {begin}
    both = lambda low: low + {draw}
    count = 0
    while {draw} < 0.9:
        count += 1
    order = sorted(range(5), key=lambda _: {draw})
    return [both(1.0), both(1.0), *[{draw} for _ in range(n)]], count, order, rolled(new_key, n)
"""


def test_the_help_for_draws_is_followed_wherever_an_expression_stands() -> None:
    key_help, draw_help = impure_calls.key_helps("")
    begin, draw = CODE.findall(key_help)[2], CODE.findall(draw_help)[1]
    f = load(HEAD + PLACES.format(begin=begin, draw=draw)).f
    ns, keys = jnp.arange(8), jax.random.split(jax.random.key(0), 8)
    values, counts, orders, sums = f(ns, keys)
    for lane in range(8):
        expected = f.plain(int(ns[lane]), keys[lane])
        np.testing.assert_allclose(values[lane], expected[0], rtol=1e-6)
        np.testing.assert_allclose(sums[lane], expected[3], rtol=1e-6)
        assert (int(counts[lane]), [int(order[lane]) for order in orders]) == expected[1:3]
        assert len({float(value) for value in values[lane]}) == len(values[lane])  # no two draws share a key
