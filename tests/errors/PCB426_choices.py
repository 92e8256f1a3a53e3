import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def double(n):
    return n + n


learned = True
schedule = pcbatch.learn_schedule(double, jnp.arange(3), episodes=5) if learned else "auto"
print(double.with_options(plan=pcbatch.Plan(schedule=schedule))(jnp.arange(3)))
