"""Derivatives of a random program over Python's own data: those of the batch are those of the plain function.

The plain function runs on numbers with a derivative (`duals`), once for each floating argument and element of a list.
"""

from __future__ import annotations

import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from pcbatch.data.host.ragged import Ragged
from pcbatch.errors import CompileError, UsageError
from tests.oracles.duals import MATH, Dual, dual
from tests.oracles.interpreters import Mismatch
from tests.oracles.python_programs import RAISED, Refused, argument_of, limited
from tests.programs.small_programs import SmallProgram

LANES = 3
LENGTH = 32  # of containers inside of a trace
LONGEST = 6  # of lists given


def check_gradients(program: SmallProgram, seed: int, reverse: bool) -> None:
    """Compare with plain Python, in 64 bits.

    Raises:
        Refused: the compiler does not take the program.
        Mismatch: a derivative differs.
        Endless: plain Python does not end soon, or all lanes fail.
    """
    kinds = [kind for _, kind in program.params]
    columns = program.columns(seed, LANES)
    wanted = _wanted(program, kinds, columns)
    fn = program.load(f"<gradient of {seed}>")
    args = [argument_of(kind, column) for kind, column in zip(kinds, columns, strict=True)]
    where = [k for k, kind in enumerate(kinds) if kind in ("flt", "flist")]
    floats = [args[k].values if kinds[k] == "flist" else args[k] for k in where]
    alive = np.array([not isinstance(one, Exception) for one in wanted])
    batched = pcbatch.batch(fn).with_options(max_length=LENGTH, max_tape=2000, max_depth=32)

    def value(*new: Any) -> Any:
        given = list(args)
        for k, x in zip(where, new, strict=True):
            given[k] = Ragged(x, args[k].lengths) if kinds[k] == "flist" else x
        return batched.run(*given).value

    directions = [np.random.default_rng(seed).normal(size=np.shape(x)) for x in floats]
    try:
        found: Any = _reverse(value, floats, alive) if reverse else _forward(value, floats, directions)
    except (CompileError, UsageError) as error:
        raise Refused(error) from None
    for lane in (lane for lane in range(LANES) if alive[lane]):
        wants = [np.asarray(wanted[lane][k]) for k in where]
        if reverse:
            gots = [np.asarray(x)[lane] for x in found]
            gots = [got[: len(want)] if want.ndim else got for got, want in zip(gots, wants, strict=True)]
        else:
            parts = [d[lane][: len(want)] if want.ndim else d[lane] for d, want in zip(directions, wants, strict=True)]
            gots = [np.asarray(found)[lane]]
            wants = [np.sum([np.sum(want * part) for want, part in zip(wants, parts, strict=True)])]
        for got, want in zip(gots, wants, strict=True):
            if not np.allclose(got, want, rtol=1e-8, atol=1e-9):
                raise Mismatch(f"lane {lane}, derivatives: {gots} instead of {wants}")


def _wanted(program: SmallProgram, kinds: list[str], columns: list[list[Any]]) -> list[Any]:
    """Per lane: by argument the derivatives, or what the plain function raises."""
    plain = program.load("<dual>", {"math": MATH})
    found: list[Any] = []
    with limited():
        for lane in range(LANES):
            try:
                found.append(_derivatives(plain, kinds, [column[lane] for column in columns]))
            except RAISED as error:
                found.append(error)
    return found


def _derivatives(plain: Any, kinds: list[str], example: list[Any]) -> dict[int, Any]:
    def run(k: int, i: int) -> float:
        given = [
            [Dual(v, float(n == k and j == i)) for j, v in enumerate(x)] if kind == "flist"
            else Dual(x, float(n == k)) if kind == "flt" else copy.copy(x)
            for n, (kind, x) in enumerate(zip(kinds, example, strict=True))
        ]  # fmt: skip
        return float(dual(plain(*given)).slope)

    run(-1, 0)
    return {
        k: [run(k, i) for i in range(len(example[k]))] if kind == "flist" else run(k, 0)
        for k, kind in enumerate(kinds)
        if kind in ("flt", "flist")
    }


def _reverse(value: Any, floats: list[Any], alive: np.ndarray) -> list[Any]:
    def total(*new: Any) -> Any:
        return jnp.sum(jnp.where(alive, value(*new), 0.0))

    return list(jax.grad(total, argnums=tuple(range(len(floats))))(*floats))


def _forward(value: Any, floats: list[Any], directions: list[Any]) -> Any:
    return jax.jvp(value, tuple(floats), tuple(directions))[1]
