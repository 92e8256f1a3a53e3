import jax.numpy as jnp

import pcbatch


class Counter:
    def __init__(self):
        self.made = 0

    def down(self, k):
        if k > 0:
            self.made += 1
            yield k
            yield from self.down(k - 1)


@pcbatch.batch
def f(n):
    counter = Counter()
    for k in counter.down(5):
        if k <= n:
            break
    return counter.made


f(jnp.array([2, 4]))
