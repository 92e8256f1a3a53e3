"""The machine: its state, one block, one trip. All of it is traced by JAX.

machine.py     start, advance, finish: a run as a loop of trips
policies.py    a trip: the choice of blocks                      blocks.py          the blocks as policies see them
(emit/)        a visit of a block in one of its modes            lane_window.py     the lanes of a visit
step.py        one step of one block: read, compute, write       block_body.py      the body as a function of lanes
layout.py      the arrays of a state                             frames.py          the stack of saved values
"""
