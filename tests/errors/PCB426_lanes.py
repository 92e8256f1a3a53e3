from dataclasses import replace

import jax.numpy as jnp

import pcbatch


@pcbatch.batch(plan=pcbatch.Plan(fork="always"))
def fib(n):
    if n <= 1:
        return 1.0
    return fib(n - 2) + fib(n - 1)


n = jnp.array([7, 3, 9])
policy = replace(pcbatch.learn_schedule(fib, n, episodes=5), deployed="lemma")
fib.with_options(plan=pcbatch.Plan(schedule=policy, fork="never"))(n)
