import pcbatch

pcbatch.batch(len)
