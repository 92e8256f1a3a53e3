"""pcbatch: write a function for one example; run it on a batch, each lane at its own pace."""

from pcbatch.api import Batched as Batched
from pcbatch.api import batch as batch
from pcbatch.api import inline as inline
from pcbatch.api import unroll as unroll
from pcbatch.devices import use_cpu_devices as use_cpu_devices
from pcbatch.errors import BatchRuntimeError as BatchRuntimeError
from pcbatch.errors import CompileError as CompileError
from pcbatch.errors import NonFiniteError as NonFiniteError
from pcbatch.errors import PcbatchError as PcbatchError
from pcbatch.errors import StateError as StateError
from pcbatch.errors import TooLargeError as TooLargeError
from pcbatch.errors import UsageError as UsageError
from pcbatch.explained import BlockPlan as BlockPlan
from pcbatch.explained import Explanation as Explanation
from pcbatch.interrupts import Interrupted as Interrupted
from pcbatch.machines import Machine as Machine
from pcbatch.modes import Dense as Dense
from pcbatch.modes import Few as Few
from pcbatch.modes import Strips as Strips
from pcbatch.profile import BlockProfile as BlockProfile
from pcbatch.profile import Profile as Profile
from pcbatch.profile import Timeline as Timeline
from pcbatch.results import BlockStats as BlockStats
from pcbatch.results import Result as Result
from pcbatch.results import Stats as Stats
from pcbatch.runtime.blocks import Blocks as Blocks
from pcbatch.runtime.schedule import Policy as Policy
from pcbatch.runtime.status import Status as Status
from pcbatch.tape_use import BlockTapeUse as BlockTapeUse
from pcbatch.tape_use import TapeUse as TapeUse

__version__ = "0.1.0"
__all__ = [
    "BatchRuntimeError",
    "Batched",
    "BlockPlan",
    "BlockProfile",
    "BlockStats",
    "BlockTapeUse",
    "Blocks",
    "CompileError",
    "Dense",
    "Explanation",
    "Few",
    "Interrupted",
    "Machine",
    "NonFiniteError",
    "PcbatchError",
    "Policy",
    "Profile",
    "Result",
    "StateError",
    "Stats",
    "Status",
    "Strips",
    "TapeUse",
    "Timeline",
    "TooLargeError",
    "UsageError",
    "batch",
    "inline",
    "unroll",
    "use_cpu_devices",
]
