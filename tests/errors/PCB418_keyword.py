import numpy as np

import pcbatch

N = np.arange(4)


@pcbatch.batch
def f(n, k):
    return n + k


f.map(iter([N, N]), k=N)
