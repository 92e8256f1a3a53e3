import jax.numpy as jnp

import pcbatch


@pcbatch.batch(plan=pcbatch.Plan(fork="always"))
def fib(n):
    if n <= 1:
        return 1.0
    return fib(n - 2) + fib(n - 1)


n = jnp.array([7, 3, 9])
policy = pcbatch.learn_schedule(fib, n, episodes=5)
fib.with_options(plan=pcbatch.Plan(schedule=policy, fork="never"))(n)
