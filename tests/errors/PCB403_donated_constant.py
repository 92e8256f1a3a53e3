import pcbatch


@pcbatch.batch(donate_argnames="n", static_argnames=("n",))
def power(x, n):
    return x**n
