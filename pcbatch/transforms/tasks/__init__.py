"""Gradients of runs by tasks: what visits record, and how they are undone, the last one first.

task_tape.py   what each block records, which values cotangents flow through
exits.py       where the values of a block go
recorder.py    visits are recorded                       undo.py        visits are undone
backward.py    from cotangents of results to those of arguments
recorded_run.py, backward_run.py: both as operations of JAX
"""
