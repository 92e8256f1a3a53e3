import pcbatch


class Mine:
    def trip(self, blocks, carry):
        return blocks.sweep(range(len(blocks)), carry)


pcbatch.batch(plan=pcbatch.Plan(schedule=Mine()))
