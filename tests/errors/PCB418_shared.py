import numpy as np

import pcbatch

N = np.arange(4)


@pcbatch.batch(in_axes=(0, None))
def f(n, k):
    return n + k


f.map(iter([(N, 2), (N, 3)]))
