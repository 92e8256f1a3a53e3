import pcbatch

pcbatch.batch(plan=pcbatch.Plan(modes={"n + n": "dense"}))
