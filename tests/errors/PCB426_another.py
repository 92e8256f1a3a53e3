from dataclasses import replace

import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def digits(n, k):
    count = 0
    while n > 0:
        rest = k
        while rest > n:
            rest = rest // 2
            count = count + 1
        n = n // 10
    return count


@pcbatch.batch
def down(n, k):
    while n > k:
        n = n - 2
    return n


n, k = jnp.array([7, 1000, 42]), jnp.array([30, 2, 90])
policy = replace(pcbatch.learn_schedule(digits, n, k, episodes=5), deployed="lemma")
print(down.with_options(plan=pcbatch.Plan(schedule=policy))(n, k))
