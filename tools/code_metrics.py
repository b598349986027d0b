"""Count how large a revision of csrc is to its readers: modules, functions, types on the ways.

    python tools/code_metrics.py [--list] [ROOT...]

ROOT is a checkout, as ``git archive REVISION | tar -x -C ROOT`` makes one; the default is this one.
Nothing is built. ``--list`` names the types, each with the functions that name it. Printed are, for
each:

- the files of every module, and of the largest folder;
- lengths of functions in lines, from head to closing brace: median, 90th percentile, longest;
- the types of the project that are met on the ways of an all_reduce, over a board, over TCP and on
  a GPU: every class, struct, union, enum or alias of csrc that the heads and bodies of functions
  name which run in such a call (they are listed here). Base's own count as all others do; types of
  other libraries (``at::Tensor``) do not, though one of the project be named alike.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path

from cpp_functions import functions, without_noise

# What runs in a call like the one before it, by qualified names, behind the module where several
# have one of that name.
TORCH = """
    PcclBackend::allreduce PcclBackend::sample PcclBackend::perform PcclBackend::perform_all
    PcclBackend::recorded PcclBackend::issue_all PcclBackend::check_devices Call::update
    Call::piece Call::collective
"""
HOST = """
    PcclBackend::make_work PcclBackend::run_all Communicator::run Group::run Group::check
    Group::check_process check_shape check_blocks check_own_block Group::prepare Group::deadline
    Group::timeout_of GroupPhases::await_release Selector::choose signature_of
    Selector::wanted_for CollectiveQueue::prepare CollectiveQueue::take_spare history_after
    common_part collective:digest_of CollectiveOperation::prepare CollectiveOperation::begin
    CollectiveOperation::progress CollectiveOperation::start CollectiveQueue::give_back
    runs_widened overlaps_badly hull_of timeout_of
"""
BOARD = """
    Group::try_at_once CollectiveOperation::start_on_shm ShmExecutor::start
    ShmExecutor::count_rounds ShmExecutor::progress ShmExecutor::step ShmExecutor::give
    ShmExecutor::publish ShmExecutor::give_whole ShmExecutor::set_piece ShmExecutor::goes_directly
    ShmExecutor::keep_own ShmExecutor::take ShmExecutor::check ShmExecutor::reduce
    ShmExecutor::begin_round ShmExecutor::end_round ShmExecutor::source ShmExecutor::source_count
    ShmExecutor::window_of ShmExecutor::incoming ShmExecutor::outgoing ShmExecutor::own_contribution
    round_of compare ShmSegment::may_write ShmSegment::set_header ShmSegment::make_slot
    ShmSegment::post ShmSegment::has_posted ShmSegment::header ShmSegment::part
    ShmSegment::have_read ShmSegment::next_sequence Reduction::Reduction Reduction::apply
    Reduction::apply_block ShmSegment::has_read
"""
LINKS = """
    Group::progress Group::progress_until Group::progress_all EndedOperations::tell
    EndedOperations::add CollectiveQueue::progress CollectiveQueue::end_front
    CollectiveOperation::start_on_links CollectiveOperation::finish_results LinkExecutor::start
    LinkExecutor::progress LinkExecutor::progress_lane LinkExecutor::enter LinkExecutor::next_step
    LinkExecutor::may_run LinkExecutor::progress_step LinkExecutor::receive
    LinkExecutor::receive_copying LinkExecutor::receive_reducing LinkExecutor::combine_piece
    LinkExecutor::send LinkExecutor::outgoing LinkExecutor::target LinkExecutor::piece
    LinkExecutor::chunks_at LinkExecutor::adjoining LinkExecutor::open_send
    LinkExecutor::open_receive LinkExecutor::header_for LinkExecutor::flush_links
    ConnectionContext::send_link ConnectionContext::receive_link TcpSendLink::send
    TcpSendLink::send_gathered TcpSendLink::flush TcpRecvLink::receive send_some receive_some
    compare TcpSendLink::push StripedReader::receive StripedReader::read
    StripedReader::take_held LinkExecutor::length LinkExecutor::fill_carry
"""
GPU = """
    PcclBackend::launch_all PcclBackend::issued GpuBackend::launch GpuBackend::issue
    GpuBackend::group_on
    DeviceGroup::launch_all DeviceGroup::launch DeviceGroup::launch_alone
    DeviceGroup::launch_one DeviceGroup::enter DeviceGroup::schedule_for
    DeviceGroup::launch_in_order lower device:plan_of plan_collective plan_all_reduce
    plan_reduce plan_parts launch_kernel_of launch_all_reduce LaunchOrder::begin
    LaunchOrder::end kernels:plan_of
"""
# What stood there in 18a857a, which today's figures are held against.
HOST_THEN = """
    PcclBackend::timeout_of Call::updatable Group::issue Group::await_release Selector::relaying
    Group::take_spare
"""
BOARD_THEN = """
    BoardExecution::start BoardExecution::count_beats BoardExecution::streams_results
    BoardExecution::advance BoardExecution::step BoardExecution::give BoardExecution::publish
    BoardExecution::give_whole BoardExecution::set_piece BoardExecution::goes_directly
    BoardExecution::keep_own BoardExecution::take BoardExecution::check BoardExecution::reduce
    BoardExecution::end_beat BoardExecution::source BoardExecution::source_count
    BoardExecution::window_of BoardExecution::incoming BoardExecution::outgoing
    BoardExecution::own_contribution BoardExecutor::streams_results BoardExecutor::is_direct
"""
LINKS_THEN = """
    Group::advance_collectives Group::end_collective Execution::start Execution::advance
    Execution::advance_lane Execution::enter Execution::next_step Execution::may_run
    Execution::advance_step Execution::receive Execution::receive_copying
    Execution::receive_reducing Execution::combine_piece Execution::send Execution::outgoing
    Execution::target Execution::piece Execution::chunks_at Execution::open_send
    Execution::open_receive Execution::header_for Execution::flush_links
"""
GPU_THEN = """
    launch_in_order choose LaunchWindow::take
"""
MODULES = {"torch", "comm", "collective", "runtime", "device", "transport", "sys", "kernels"}
WAYS = {
    "board": (TORCH + HOST + BOARD).split(),
    "TCP": (TORCH + HOST + LINKS).split(),
    "GPU": (TORCH + GPU).split(),
}
WAYS_THEN = {
    "board": (HOST_THEN + BOARD_THEN).split(),
    "TCP": (HOST_THEN + LINKS_THEN).split(),
    "GPU": GPU_THEN.split(),
}

_TYPE = re.compile(
    r"\b(?:class|struct|union|enum(?:\s+class)?)\s+(?:PCCL_API\s+|alignas\([^)]*\)\s*|\[\[nodiscard\]\]\s*)*(\w+)[^;(){}]*\{"
    r"|\busing\s+(\w+)\s*="
)
_FOREIGN = re.compile(r"\b(?:at|c10|c10d|torch|std)::\w+")


def main() -> int:
    """Print the figures of every root."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--list", action="store_true", help="name the types")
    options.add_argument("roots", nargs="*", type=Path, metavar="ROOT")
    given = options.parse_args()
    for root in given.roots or [Path(__file__).resolve().parent.parent]:
        print(f"{root}:")
        print_modules(root / "csrc")
        lengths = sorted(
            found.lines for path in sources(root / "csrc") for found in functions(path)
        )
        print(
            f"  {len(lengths)} functions: median {statistics.median(lengths):g} lines,"
            f" p90 {lengths[len(lengths) * 9 // 10]}, longest {lengths[-1]}",
        )
        for way, met in types_on_ways(root / "csrc").items():
            print(f"  types on the way, {way}: {len(met)}")
            for name in sorted(met) if given.list else ():
                print(f"    {name}: {', '.join(met[name])}")
    return 0


def sources(folder: Path) -> list[Path]:
    """Give the C++ and CUDA files of a folder and those below it."""
    return sorted(path for path in folder.rglob("*") if path.suffix in {".h", ".cc", ".cu", ".cuh"})


def print_modules(csrc: Path) -> None:
    """Print files by module, and what the fullest folder has."""
    paths = [path.relative_to(csrc) for path in csrc.rglob("*") if path.is_file()]
    modules = Counter(path.parts[0] for path in paths)
    folder, most = Counter(str(path.parent) for path in paths).most_common(1)[0]
    print(
        "  files: " + ", ".join(f"{module} {number}" for module, number in sorted(modules.items()))
    )
    print(f"  fullest folder: {folder}, {most}")


def types_on_ways(csrc: Path) -> dict[str, dict[str, list[str]]]:
    """Give the project's types that each way's functions name, and which do."""
    texts = [without_noise(path.read_text()) for path in sources(csrc)]
    types = {name for text in texts for match in _TYPE.findall(text) for name in match if name}
    words: dict[str, set[str]] = defaultdict(set)
    for path in sources(csrc):
        module = path.relative_to(csrc).parts[0]
        if module not in MODULES:
            continue
        for found in functions(path):
            named = set(re.findall(r"\w+", _FOREIGN.sub("", found.text))) & types
            words[found.name] |= named
            words[f"{module}:{found.name}"] |= named
    ways: dict[str, dict[str, list[str]]] = {}
    for way, names in WAYS.items():
        met = ways[way] = defaultdict(list)
        for function in names + WAYS_THEN[way]:
            for name in words[function]:
                met[name].append(function)
    return ways


if __name__ == "__main__":
    sys.exit(main())
