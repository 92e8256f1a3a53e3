import jax.numpy as jnp

import pcbatch


class Widens:
    name = "widens"

    def trip(self, blocks, carry):
        carry = blocks.visit(0, carry)
        return {**carry, "pc": carry["pc"].astype(jnp.int32)}


@pcbatch.batch(plan=pcbatch.Plan(schedule=Widens()))
def double(n):
    return n + n


double(jnp.arange(3))
