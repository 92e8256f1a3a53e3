"""Reports for people: the schedule, the profile, the tape, what was tuned, and how lanes failed; and their classes."""

from pcbatch.call.results import BlockStats as BlockStats
from pcbatch.call.results import Stats as Stats
from pcbatch.report.profile import BlockProfile as BlockProfile
from pcbatch.report.profile import Profile as Profile
from pcbatch.report.profile import Timeline as Timeline
from pcbatch.report.schedule import BlockPlan as BlockPlan
from pcbatch.report.schedule import Explanation as Explanation
from pcbatch.report.tape import BlockTapeUse as BlockTapeUse
from pcbatch.report.tape import TapeUse as TapeUse
from pcbatch.report.tuned import Tuned as Tuned
from pcbatch.runtime.vm.blocks import Blocks as Blocks
