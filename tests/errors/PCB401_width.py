import pcbatch

pcbatch.Few(0)
