import numpy as np

import pcbatch


@pcbatch.batch
def f(n):
    return n + 1


f(np.ma.array([1, 2, 3], mask=[0, 1, 0]))
