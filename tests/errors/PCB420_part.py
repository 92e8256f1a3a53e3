import jax.numpy as jnp

import pcbatch


class First:
    name = "first"

    def trip(self, blocks, carry):
        return blocks.visit(0, carry), "done"


@pcbatch.batch(plan=pcbatch.Plan(schedule=First()))
def double(n):
    return n + n


double(jnp.arange(3))
