"""The machine of lists, which runs a program in task IR: independent calls side by side. Its door is `TaskExecutable`.

Each block at which tasks start or go on has a list of records. A visit takes the newest records, computes the block for
all of them, and puts what follows on other lists. A task that waits for others has a frame of a pool; the last result
that it waits for puts the frame on the list of the block after the `sync`.

task_plan.py   what the arrays are, who writes them; phases  sites.py        places of results, cells of frames
bodies.py      the bodies of blocks as functions              sizes.py        how large the arrays are
lists.py       records: pop, push                             pool.py         frames: take, give back, deliver; masks
reading.py     a visit: records popped and computed           visit.py        a visit: what is written after that
trip.py        which blocks run, and how wide                 growing.py      trips and more room, until all have ended
devices.py     runs on several devices                        spread.py       one example's tasks dealt to devices
steps.py       how many blocks examples have run              executable.py   runs on the host's side
state.py       the arrays before a run, and larger ones       fallback.py     examples that lanes run again
"""

from pcbatch.runtime.tasks.executable import TaskExecutable, TaskOptions
from pcbatch.runtime.tasks.sites import CannotRun

__all__ = ["CannotRun", "TaskExecutable", "TaskOptions"]
