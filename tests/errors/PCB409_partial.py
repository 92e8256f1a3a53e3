import functools

import pcbatch


def f(n, k):
    return n + k


pcbatch.batch(functools.partial(f, 3))
