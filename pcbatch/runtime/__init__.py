"""Running programs: the machine, the plans for it, its devices, the host's side of a run, and the second strategy.

`vm/` is the machine, all of it traced by JAX; `emit/` writes the visits of its blocks; `costs/` estimates time and
memory and plans by them; `sharding/` assigns lanes to devices; `execute/` is the host's side; `local_strategy/` is the
strategy "local".
"""
