import pcbatch


class Model:
    def f(self, n):
        return n


pcbatch.batch(Model().f)
