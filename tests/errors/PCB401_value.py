import pcbatch

pcbatch.batch(schedule="fastest")
