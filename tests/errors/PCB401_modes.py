import pcbatch

pcbatch.batch(modes={"n + n": "dense"})
