"""The sizes of the arrays of a machine of lists: the width of visits, the pool, the lists."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pcbatch.runtime.tasks.task_plan import ListBlock, TaskPlan

LEAST_WIDTH, MOST_WIDTH = 256, 1024  # records of a visit
RESERVE = 64  # frames for those that go on one by one
POOL_PER_EXAMPLE = 64  # frames
TRACED_PER_EXAMPLE = 16  # frames inside a trace, where all arrays are made and written with zeros for every run
LEAST_POOL, LEAST_ROOM = 16, 64  # times the width
LEAST_FRAMES, LEAST_SMALL = 8, 8  # frames, and records of a visit, of machines whose records are large
GROWTH = 4  # every size is one more program to compile


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of one machine; programs are compiled for them.

    Attributes:
        lanes: examples.
        width: the most records of one visit.
        frames: frames of the pool.
        reserve: frames that are left to tasks that go on one by one.
        room: records of a list of which nothing else says how long it may get.
    """

    lanes: int
    width: int
    frames: int
    reserve: int
    room: int

    def capacity(self, plan: TaskPlan, block: ListBlock) -> int:
        """Return the records that a list has room for.

        Where tasks start others for frames alone, the tasks of an example are a tree, whose inner nodes hold a frame
        each. So those that hold none, and wait, are at most one for each example and `most - 1` for each frame.
        """
        if block.block.joins or block.block.open:
            return self.frames
        if plan.bounded:
            return self.lanes + self.frames * (plan.sites.most - 1)
        return max(self.room, self.lanes)

    def length(self, plan: TaskPlan, block: ListBlock) -> int:
        """Return the length of a list's columns: slices are read and written beyond what is full."""
        widest = max([1, *(other.pushes.get(block.label, 0) for other in plan.blocks)])
        if block.block.joins:  # of those whose last result has come, and of those that wait for none
            widest = max(2, widest)
        return self.capacity(plan, block) + self.width * widest

    def limited(self, plan: TaskPlan, block: ListBlock) -> dict[str, int]:
        """Return the lists that a visit of a block might fill, each with the records that it gains for each popped."""
        if plan.bounded:
            return {}
        gains = {label: n - (label == block.label) for label, n in block.pushes.items()}
        return {
            label: n
            for label, n in gains.items()
            if n > 0 and not (plan.block(label).block.joins or plan.block(label).block.open)
        }

    def larger(self, pool_is_empty: bool) -> Sizes:
        """Return larger sizes, for a run that is stuck with these: of the pool if no frame is free, else of lists."""
        if pool_is_empty:
            return replace(self, frames=GROWTH * self.frames)
        return replace(self, room=GROWTH * self.room)

    def smaller(self) -> Sizes:
        """Return smaller sizes, for large frames or records: half the pool, narrower visits if that is too small."""
        frames = max(self.frames // 2, LEAST_FRAMES) if self.frames else 0
        width = max(self.width // 2, LEAST_SMALL) if self.frames <= LEAST_POOL * self.width else self.width
        room = max(self.room // 2, self.lanes + width)
        return replace(self, width=width, frames=frames, reserve=min(self.reserve, max(frames - 1, 0)), room=room)


def chosen(
    plan: TaskPlan,
    lanes: int,
    width: int | None,
    frames: int | None,
    reserve: int | None,
    room: int | None,
    per_example: int = POOL_PER_EXAMPLE,
) -> Sizes:
    """Return the sizes for a number of examples, with so many frames for each; what is not None is as given."""
    if width is None:
        width = min(MOST_WIDTH, max(LEAST_WIDTH, 1 << (lanes - 1).bit_length()))
    reserve = min(RESERVE, 16 + width) if reserve is None else reserve
    if frames is None:
        frames = max(LEAST_POOL * width + reserve, per_example * lanes)
    room = lanes + LEAST_ROOM * width if room is None else max(room, 1)
    if not plan.framed:
        frames = reserve = 0
    return Sizes(lanes, width, frames, min(reserve, max(frames - 1, 0)), room)
