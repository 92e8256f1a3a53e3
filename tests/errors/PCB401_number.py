import pcbatch

pcbatch.batch(max_depth=0)
