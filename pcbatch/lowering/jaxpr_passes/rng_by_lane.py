"""Draw lane by lane where JAX would draw for all lanes with the key of one.

before:  u:u32[] = random_bits[bit_width=32 shape=()] key     where key: key<rbg>[]
after:   u:u32[] = custom_vmap_call[...] key                  under `vmap`: one key after another

The generators "rbg" and "unsafe_rbg" are one operation of XLA, which takes one key. Under `jax.vmap` JAX gives it the
first of the keys and deals out what it draws: the numbers are not those of the plain function, and those of one lane
depend on another one's key. Here every lane draws with its own. Keys of the default kind are batched as they should be.
"""

from __future__ import annotations

from typing import Any

from jax.custom_batching import sequential_vmap

from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.jaxpr_passes.rewrite_jaxprs import Rewrite, as_call

TAGS = ("key<rbg>", "key<urbg>")
OF_KEYS = ("random_bits", "random_split", "random_fold_in")


def run(program: StackProgram) -> StackProgram:
    """Rewrite a program whose calls are lowered."""
    return _Apart().stack(program)


def run_cfg(program: CfgProgram) -> CfgProgram:
    """Rewrite a program whose calls are operations."""
    return _Apart().cfg(program)


class _Apart(Rewrite):
    def equation(self, eqn: Any) -> Any:
        name = eqn.primitive.name
        of_key = name in OF_KEYS and str(eqn.invars[0].aval.dtype) in TAGS
        if not of_key and name != "rng_bit_generator":
            return eqn
        one_by_one: Any = sequential_vmap  # untyped

        def draw(*args: Any, **params: Any) -> Any:
            return one_by_one(lambda *xs: eqn.primitive.bind(*xs, **params))(*args)

        call = as_call(draw, eqn)
        return eqn if call is None else call
