import pcbatch


@pcbatch.batch(donate_argnames=("state",))
def step(x):
    return x + 1
