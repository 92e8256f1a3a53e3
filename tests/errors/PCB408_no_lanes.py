import pcbatch


@pcbatch.batch(in_axes=None)
def f(n):
    return n


f(3)
