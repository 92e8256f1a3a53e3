"""pcbatch: write a function for one example; run it on a batch, each lane at its own pace."""

from pcbatch.api.batch import batch as batch
from pcbatch.api.batch import inline as inline
from pcbatch.api.batch import primitive as primitive
from pcbatch.api.batch import unroll as unroll
from pcbatch.api.batched import Batched as Batched
from pcbatch.api.learn_schedule import learn_schedule as learn_schedule
from pcbatch.ask.asking import gather as gather
from pcbatch.ask.asking import serving as serving
from pcbatch.call.devices import use_cpu_devices as use_cpu_devices
from pcbatch.call.results import BlockStats as BlockStats
from pcbatch.call.results import Result as Result
from pcbatch.call.results import Stats as Stats
from pcbatch.data.host.dict_forms import Dicts as Dicts
from pcbatch.data.host.dict_forms import Sets as Sets
from pcbatch.data.host.ragged import Ragged as Ragged
from pcbatch.data.host.ragged import RaggedBytes as RaggedBytes
from pcbatch.data.host.ragged import RaggedTuples as RaggedTuples
from pcbatch.data.host.ragged import ragged as ragged
from pcbatch.data.host.texts import Texts as Texts
from pcbatch.data.host.texts import texts as texts
from pcbatch.data.objects.files import load_packed as load_packed
from pcbatch.data.objects.made_results import Made as Made
from pcbatch.data.objects.pack import pack as pack
from pcbatch.data.objects.packed import Packed as Packed
from pcbatch.errors import BatchRuntimeError as BatchRuntimeError
from pcbatch.errors import CompileError as CompileError
from pcbatch.errors import NonFiniteError as NonFiniteError
from pcbatch.errors import PcbatchError as PcbatchError
from pcbatch.errors import StateError as StateError
from pcbatch.errors import TooLargeError as TooLargeError
from pcbatch.errors import UsageError as UsageError
from pcbatch.options import Dense as Dense
from pcbatch.options import Few as Few
from pcbatch.options import Kernel as Kernel
from pcbatch.options import Strips as Strips
from pcbatch.report.profile import BlockProfile as BlockProfile
from pcbatch.report.profile import Profile as Profile
from pcbatch.report.profile import Timeline as Timeline
from pcbatch.report.schedule import BlockPlan as BlockPlan
from pcbatch.report.schedule import Explanation as Explanation
from pcbatch.report.tape import BlockTapeUse as BlockTapeUse
from pcbatch.report.tape import TapeUse as TapeUse
from pcbatch.runs.interrupts import Interrupted as Interrupted
from pcbatch.runs.run_handle import Machine as Machine
from pcbatch.runtime.learned.policy import Learned as Learned
from pcbatch.runtime.vm.blocks import Blocks as Blocks
from pcbatch.runtime.vm.policies import Policy as Policy
from pcbatch.runtime.vm.status import Status as Status
from pcbatch.tuning.tuned import Tuned as Tuned

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
    "Dicts",
    "Explanation",
    "Few",
    "Interrupted",
    "Kernel",
    "Learned",
    "Machine",
    "Made",
    "NonFiniteError",
    "Packed",
    "PcbatchError",
    "Policy",
    "Profile",
    "Ragged",
    "RaggedBytes",
    "RaggedTuples",
    "Result",
    "Sets",
    "StateError",
    "Stats",
    "Status",
    "Strips",
    "TapeUse",
    "Texts",
    "Timeline",
    "TooLargeError",
    "Tuned",
    "UsageError",
    "batch",
    "gather",
    "inline",
    "primitive",
    "learn_schedule",
    "load_packed",
    "pack",
    "ragged",
    "serving",
    "texts",
    "unroll",
    "use_cpu_devices",
]


def __dir__() -> list[str]:
    """Public names alone; modules of the package can be imported all the same."""
    return [*__all__, "__version__"]
