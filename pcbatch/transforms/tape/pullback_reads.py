"""The values that a pullback reads, found by tracing it.

A record should hold what the pullback of its block reads, and nothing else: writing and reading records is most of the
price of a gradient. What a pullback reads depends on each primitive of the block (`tanh` needs its result, a product
its other factor, a sum nothing) and on what can be computed again from other values. No table tells this; tracing does:

1. The pullback of a block (`block_vjp.replay`, then `pull_back`) is a function of its sources and of the cotangents of
   its outputs. It is traced for `WIDTH` records without values, which gives a jaxpr.
2. The cotangents of registers that are accessed by index are no result of it: they are in the machine's state.
   `ProbeMemory` takes the role of this state. It answers a store with zeros of the right shape, and collects the
   indices and cotangents that it is called with; these are returned, so that they count as used.
3. JAX's dead-code elimination (`dce_jaxpr`), with all results used, tells which inputs are read.

```
block       y = w * x;  r = tanh(y);  s = r + z
sources     w, x, z
pullback    ct_z = ct_s;  ct_y = ct_s * (1 - r * r);  ct_x = ct_y * w;  ct_w = ct_y * x
reads       w and x, from which r is computed again; z is not recorded
```

Results that are expensive to compute again are offered as inputs besides the sources. The pullback takes them where it
needs them; the equations that would compute them are then dead, and so perhaps are some sources.

The pullback of a block with deferred cotangents (`uniform_cotangents.py`) has two parts: a trip stores the cotangents
at the edge of what it undoes, and later one pullback continues from there for many records (`_read_later`). A record
has what either reads.

Cotangents at the edge are often equal: in `tanh(w @ x + b)` with `w` and `b` deferred, those of the product and of the
sum. They are then one variable of the jaxpr, which is stored once; `PullbackReads.alias_of` maps the other values to
the one that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.extend.core as jex
import jax.numpy as jnp
from jax.interpreters.partial_eval import dce_jaxpr

from pcbatch.transforms.tape.block_ssa import Body, ExpensiveResult, Load, Recordable, SharedValue, Store
from pcbatch.transforms.tape.block_vjp import Env, pull_back, pull_back_shared, replay
from pcbatch.transforms.tape.record_layout import struct_of

WIDTH = 2  # records that a pullback is traced for: not one, a size that JAX may treat specially


class PullbackReads(NamedTuple):
    """The values that the pullback of a block reads, and the cotangents that it gives and defers."""

    sources: tuple[Recordable, ...]  # what it reads of records
    pulled: frozenset[int]  # the sources that get a cotangent, by number
    deferred_cts: tuple[int, ...]  # values whose cotangents are deferred, by number
    alias_of: Mapping[int, int]  # other values with the same cotangent as one of `deferred_cts`


class ProbeMemory:
    """A `Memory` without arrays, which collects the values that it is called with."""

    def __init__(self) -> None:
        self.used: list[Any] = []

    def undo_load(self, step: Load, indices: Sequence[Any], cotangent: Any) -> None:
        self.used += [*indices, cotangent]

    def undo_store(self, step: Store, indices: Sequence[Any]) -> Any:
        self.used += indices
        return jnp.zeros((WIDTH, *step.eqn.invars[2].aval.shape), step.eqn.invars[2].aval.dtype)


class _Traced(NamedTuple):
    """A pullback that was traced."""

    keys: set[str]  # of the sources and expensive results that it reads
    results: Any  # the tree of its results, with variables of the jaxpr as leaves


def reads_of(body: Body, small_shared: Sequence[str] = ()) -> PullbackReads:
    """Return the reads of a record of a block: by the trip that undoes it, and by what that leaves for later."""
    given: set[int] = set()

    def pullback(env: Env, cts: Mapping[int, Any]) -> Any:
        memory = ProbeMemory()
        pulled = pull_back(body, env, cts, WIDTH, memory)
        given.update(s.number for s in body.sources if s.number in pulled)
        edge = {n: ct for n in body.edge if (ct := pulled.get(n, cts.get(n))) is not None}
        summed = [s for s in body.sources if not isinstance(s, SharedValue) or s.name in small_shared]
        return [pulled[s.number] for s in summed if s.number in pulled], memory.used, edge

    traced = _trace(body, small_shared, pullback, tuple(body.outputs), body.expensive)
    edge = traced.results[-1]
    stored: dict[Any, int] = {}  # the first value with a cotangent, by the variable of the cotangent
    alias_of: dict[int, int] = {}
    for number in (n for n in body.edge if n in edge):
        first = stored.setdefault(_identity(edge[number]), number)
        if first != number:
            alias_of[number] = first
    keys = traced.keys
    if stored:
        keys = keys | _read_later(body, small_shared, (*stored.values(), *alias_of), keys)
    sources = (s for s in (*body.sources, *body.expensive) if not isinstance(s, SharedValue) and s.key in keys)
    return PullbackReads(tuple(sources), frozenset(given), tuple(stored.values()), alias_of)


def _identity(result: Any) -> Any:
    # A literal is no variable, and equal to itself alone.
    return result if isinstance(result, jex.Var) else id(result)


def _read_later(body: Body, small_shared: Sequence[str], numbers: Sequence[int], recorded: set[str]) -> set[str]:
    """The keys of the values that the cotangents of deferred variables are computed from, besides the cotangents of the
    values `numbers`. Expensive results are among them only if they are `recorded` anyway."""

    def pullback(env: Env, cts: Mapping[int, Any]) -> Any:
        pulled = pull_back_shared(body, env, cts, WIDTH)
        return [pulled[s.number] for s in body.sources if isinstance(s, SharedValue) and s.number in pulled]

    return _trace(body, small_shared, pullback, numbers, [s for s in body.expensive if s.key in recorded]).keys


def _trace(
    body: Body,
    small_shared: Sequence[str],
    pullback: Callable[[Env, Mapping[int, Any]], Any],
    numbers: Sequence[int],
    expensive: Sequence[ExpensiveResult],
) -> _Traced:
    """Trace a pullback, given the cotangents of the values `numbers`."""
    sources = (*body.sources, *expensive)
    # Each lane has a copy of a small shared value, as it has a cotangent of its own.
    per_record = [s for s in sources if not isinstance(s, SharedValue) or s.name in small_shared]
    uniform = [s for s in sources if isinstance(s, SharedValue) and s.name not in small_shared]
    types = {**body.outputs, **body.edge}

    def function(values: list[Any], shared: list[Any], cts: list[Any]) -> Any:
        records = {s.key: x for s, x in zip(per_record, values, strict=True)}
        env = replay(body, records, {s.name: x for s, x in zip(uniform, shared, strict=True)}, WIDTH)
        return pullback(env, dict(zip(numbers, cts, strict=True)))

    structs = [struct_of(s.type, (WIDTH,)) for s in per_record], [struct_of(s.type, ()) for s in uniform]
    cts = [struct_of(types[n], (WIDTH,)) for n in numbers]
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*structs, cts)
    outs = closed.jaxpr.outvars
    read = dce_jaxpr(closed.jaxpr, [True] * len(outs))[1]
    keys = {s.key for s, is_read in zip((*per_record, *uniform), read, strict=False) if is_read}
    return _Traced(keys, jax.tree.unflatten(jax.tree.structure(shapes), outs))
