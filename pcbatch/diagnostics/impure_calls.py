"""Helps for calls that run once for all lanes: draws from random generators outside JAX, clocks, input."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

import numpy as np

NUMBERS = re.compile(r"[\[(][-\d., ]*[\])]")
GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)

_KEY_HELP = (
    "give each lane a key of its own, `jax.random.split(jax.random.key(0), lanes)`, as an argument `key`, and begin "
    "the batched function with `def new_key(): nonlocal key; key, now = jax.random.split(key); return now`"
)
_SIMPLE = "jax.random.uniform(new_key())"
_PLACE = "{seq}[jax.random.randint(new_key(), (), 0, len({seq}))]"
_SHUFFLE = (
    "for k in range(len({x}) - 1, 0, -1): "
    "place = jax.random.randint(new_key(), (), 0, k + 1); {x}[k], {x}[place] = {x}[place], {x}[k]"
)
# Method -> its parameters and the draw of `jax.random` that replaces it: for Python's `random`, then for NumPy.
_PYTHON = {
    "random": ((), _SIMPLE),
    "uniform": (("a", "b"), "jax.random.uniform(new_key(), (), minval={a}, maxval={b})"),
    "randint": (("a", "b"), "jax.random.randint(new_key(), (), {a}, {b} + 1)"),
    "gauss": (("mu=0.0", "sigma=1.0"), "{mu} + {sigma} * jax.random.normal(new_key())"),
    "normalvariate": (("mu=0.0", "sigma=1.0"), "{mu} + {sigma} * jax.random.normal(new_key())"),
    "expovariate": (("lambd=1.0",), "jax.random.exponential(new_key()) / {lambd}"),
    "betavariate": (("alpha", "beta"), "jax.random.beta(new_key(), {alpha}, {beta})"),
    "gammavariate": (("alpha", "beta"), "{beta} * jax.random.gamma(new_key(), {alpha})"),
    "choice": (("seq",), "jax.random.choice(new_key(), jnp.asarray({seq}))"),
    "shuffle": (("x",), _SHUFFLE),
    "sample": (("population", "k"), "jax.random.choice(new_key(), jnp.asarray({population}), ({k},), replace=False)"),
}
_NUMPY = {
    **dict.fromkeys(
        ("random", "random_sample", "ranf", "sample"), (("size=()",), "jax.random.uniform(new_key(), {size})")
    ),
    "uniform": (
        ("low=0.0", "high=1.0", "size=()"),
        "jax.random.uniform(new_key(), {size}, minval={low}, maxval={high})",
    ),
    "normal": (("loc=0.0", "scale=1.0", "size=()"), "{loc} + {scale} * jax.random.normal(new_key(), {size})"),
    "standard_normal": (("size=()",), "jax.random.normal(new_key(), {size})"),
    "exponential": (("scale=1.0", "size=()"), "{scale} * jax.random.exponential(new_key(), {size})"),
    "poisson": (("lam=1.0", "size=()"), "jax.random.poisson(new_key(), {lam}, {size})"),
    "binomial": (("n", "p", "size=()"), "jax.random.binomial(new_key(), {n}, {p}, {size}).astype(int)"),
    "beta": (("a", "b", "size=()"), "jax.random.beta(new_key(), {a}, {b}, {size})"),
    "gamma": (("shape", "scale=1.0", "size=()"), "{scale} * jax.random.gamma(new_key(), {shape}, {size})"),
    "permutation": (("x",), "jax.random.permutation(new_key(), {x})"),
    "shuffle": (("x",), "{x} = jax.random.permutation(new_key(), {x})"),
    "choice": (
        ("a", "size=()", "replace=True", "p=None"),
        "jax.random.choice(new_key(), jnp.asarray({a}), {size}, {replace}, jnp.asarray({p}))",
    ),
}
_WHOLE = frozenset({"randint", "randrange", "integers"})


def draw(method: str, args: Sequence[str], named: dict[str, str], python: bool) -> str:
    """Return a call of `jax.random` that draws as a random method does.

    Args:
        method: The name of the method.
        args: The texts of its positional arguments.
        named: The texts of its keyword arguments.
        python: Whether the method is of Python's `random`, rather than NumPy's.

    Returns:
        The text of the call; empty if there is none for these arguments.
    """
    if method in ("rand", "randn") and not named:
        shape = f", ({', '.join(args)},)" if args else ""
        return f"jax.random.{'normal' if method == 'randn' else 'uniform'}(new_key(){shape})"
    if method in _WHOLE and not (python and method == "randint"):
        return _whole(args, named)
    parameters, text = (_PYTHON if python else _NUMPY).get(method, ((), ""))
    if python and method == "choice" and args and not NUMBERS.fullmatch(args[0]):  # texts and lists are no arrays
        text = _PLACE
    if args and args[0].isdecimal():  # a choice of numbers below it
        text = text.replace("jnp.asarray({a})", "{a}")
    defaults = {name: default for name, _, default in (p.partition("=") for p in parameters) if default}
    names = [parameter.partition("=")[0] for parameter in parameters]
    values = defaults | dict(zip(names, args, strict=False)) | named
    if len(args) > len(names) or set(values) != set(names):
        return ""
    # Arguments equal to the default are left out of the text: `loc + scale * ...` becomes `...`.
    given = {name for name in names if values[name] != defaults.get(name)}
    for name in set(names) - given:
        text = text.replace(f"{{{name}}} + ", "").replace(f"{{{name}}} * ", "")
    if not given & {"size", "replace", "p"}:
        text = text.replace(", {size}, {replace}, jnp.asarray({p}))", ")")
    elif "p" not in given:
        text = text.replace(", jnp.asarray({p}))", ")")
    if "size" not in given:
        text = text.replace(", {size})", ")")
    return text.format(**{name: _shape(value) if name == "size" else _operand(value) for name, value in values.items()})


def _whole(args: Sequence[str], named: Mapping[str, str]) -> str:
    if set(named) - {"low", "high", "size", "start", "stop"} or len(args) > 3:
        return ""
    low, high, size = [*args, *([""] * (3 - len(args)))]
    low = low or named.get("low", named.get("start", ""))
    high, size = high or named.get("high", named.get("stop", "")), _shape(size or named.get("size", "()"))
    low, high = (low, high) if high else ("0", low)
    return f"jax.random.randint(new_key(), {size}, {low}, {high})" if high else ""


def _operand(text: str) -> str:
    """Put an argument in parentheses where an expression around it needs them."""
    return f"({text})" if any(sign in text for sign in " -") and text[0] not in "([{" else text


def _shape(text: str) -> str:
    return f"({text},)" if text.isdecimal() else text


def key_helps(draw: str) -> tuple[str, ...]:
    """The helps for a call of a random function; `draw` is the call of `jax.random` that replaces it, or empty."""
    drawn = f"draw with `{draw}`" if draw else f"draw with a function of `jax.random`, for example `{_SIMPLE}`"
    return (_KEY_HELP, f"{drawn}: each call of `new_key` gives another key; other functions take it as an argument")


def once(name: str, kind: str, draw: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the title and the helps for a call that would run once: `kind` is "random", "clock" or "outside"."""
    title = f"`{name}()` runs once, while compiling: all lanes and iterations would share what it gives or does"
    before = ("call it before the batched function, and pass what it gives as an argument",)
    return title, key_helps(draw) if kind == "random" else before
