import pcbatch

pcbatch.batch(stratagem="pc")
