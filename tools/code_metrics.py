# SPDX-License-Identifier: Apache-2.0
"""Count how large a revision is to its readers, and the words of its comments.

    python tools/code_metrics.py [--list] [ROOT...]

ROOT is a checkout, as ``git archive REVISION | tar -x -C ROOT`` makes one; the default is this one.
Nothing is built. ``--list`` names the types, each with the functions that name it. Printed are, for
each:

- the files of every module, of the largest folder, short headers and short units;
- lengths of functions in lines, from head to closing brace: median, 90th percentile, longest;
- the units (a source file and its header) and the types of the project that are met on the ways of
  an all_reduce, over shared memory, over TCP and on a GPU: every class, struct, union, enum or
  alias of csrc that the heads and bodies of functions name which run in such a call (they are
  listed here). Base's own count as all others do; types of other libraries (``at::Tensor``) do not,
  though one of the project be named alike;
- names of types that are defined more than once, and former names (tools/check_vocabulary.py);
- public headers (include/pccl), and declarations in them that no comment describes;
- the words of comments in C++: *what*, sentences that begin with *Of*, verbs of speech;
- modules of Python, the longest stub, units with a test of the same name, words of documents.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path

import public_headers
from check_vocabulary import former_names
from cpp_functions import functions, without_noise

SHORT_HEADER = 20
SHORT_UNIT = 60
SPEECH = {
    *("say", "says", "said", "tell", "tells", "told", "hear", "hears", "heard"),
    *("know", "knows", "known", "speak", "speaks", "ask", "asks", "asked"),
}

# What runs in a call like the one before it, by qualified names, behind the module where several
# have one of that name.
TORCH = """
    PcclBackend::allreduce PcclBackend::sample PcclBackend::perform PcclBackend::perform_all
    PcclBackend::recorded PcclBackend::issue_all PcclBackend::check_devices Call::update
    Call::piece Call::collective
"""
HOST = """
    PcclBackend::make_work PcclBackend::run_all CommunicatorImpl::run Group::run Group::check
    Group::check_process check_shape check_blocks check_own_block Group::prepare Group::deadline
    Group::timeout_of GroupPhases::await_release Selector::choose signature_of
    Selector::wanted_for CollectiveQueue::prepare CollectiveQueue::take_spare history_after
    common_part collective:digest_of CollectiveOperation::prepare CollectiveOperation::begin
    CollectiveOperation::progress CollectiveOperation::start CollectiveQueue::give_back
    runs_widened overlaps_badly hull_of timeout_of
"""
BOARD = """
    Group::try_at_once CollectiveOperation::start_on_shm ShmExecutor::start
    ShmExecutor::count_rounds ShmExecutor::progress ShmExecutor::step ShmExecutor::post
    ShmExecutor::publish ShmExecutor::post_whole ShmExecutor::set_piece ShmExecutor::goes_directly
    ShmExecutor::copy_own ShmExecutor::consume ShmExecutor::check ShmExecutor::reduce
    ShmExecutor::begin_round ShmExecutor::end_round ShmExecutor::source ShmExecutor::source_count
    ShmExecutor::window_of ShmExecutor::incoming ShmExecutor::outgoing ShmExecutor::own_contribution
    round_of compare ShmSegment::may_write ShmSegment::set_header ShmSegment::make_slot
    ShmSegment::post ShmSegment::has_posted ShmSegment::header ShmSegment::part
    ShmSegment::have_read ShmSegment::next_sequence Reduction::Reduction Reduction::apply
    Reduction::apply_block ShmSegment::has_read
"""
LINKS = """
    Group::progress Group::progress_until Group::progress_all EndedOperations::report
    EndedOperations::add CollectiveQueue::progress CollectiveQueue::end_front
    CollectiveOperation::start_on_links CollectiveOperation::finish_results LinkExecutor::start
    LinkExecutor::progress LinkExecutor::progress_lane LinkExecutor::begin_step
    LinkExecutor::next_step LinkExecutor::may_run LinkExecutor::progress_step LinkExecutor::receive
    LinkExecutor::receive_copying LinkExecutor::receive_reducing LinkExecutor::combine_piece
    LinkExecutor::send LinkExecutor::outgoing LinkExecutor::target LinkExecutor::piece
    LinkExecutor::chunks_at LinkExecutor::adjoining LinkExecutor::open_send
    LinkExecutor::open_receive LinkExecutor::header_for LinkExecutor::flush_links
    ConnectionContext::send_link ConnectionContext::receive_link TcpSendLink::send
    TcpSendLink::send_gathered TcpSendLink::flush TcpRecvLink::receive send_some receive_some
    compare TcpSendLink::push BufferedReader::receive BufferedReader::read
    BufferedReader::take_held LinkExecutor::length LinkExecutor::fill_carry
"""
GPU = """
    PcclBackend::launch_all PcclBackend::issued GpuBackend::launch GpuBackend::issue
    GpuBackend::group_on
    DeviceGroupImpl::launch_all DeviceGroupImpl::launch DeviceGroupImpl::launch_alone
    DeviceGroupImpl::launch_one DeviceGroupImpl::enter DeviceGroupImpl::schedule_for
    DeviceGroupImpl::launch_in_order lower device:plan_of plan_collective plan_all_reduce
    plan_reduce plan_parts launch_kernel_of launch_all_reduce LaunchOrder::begin
    LaunchOrder::end kernels:plan_of
"""
MODULES = {"torch", "comm", "collective", "runtime", "device", "transport", "sys", "kernels"}
WAYS = {
    "shared memory": (TORCH + HOST + BOARD).split(),
    "TCP": (TORCH + HOST + LINKS).split(),
    "GPU": (TORCH + GPU).split(),
}

_TYPE = re.compile(
    r"\b(?:class|struct|union|enum(?:\s+class)?)\s+(?:PCCL_API\s+|alignas\([^)]*\)\s*|\[\[nodiscard\]\]\s*)*(\w+)(?:\s+final)?(?:\s*:(?!:)[^;(){}]*)?\s*\{"
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
        lengths = sorted(found.lines for path in all_sources(root) for found in functions(path))
        print(
            f"  {len(lengths)} functions: median {statistics.median(lengths):g} lines,"
            f" p90 {lengths[len(lengths) * 9 // 10]}, longest {lengths[-1]}",
        )
        units = units_on_ways(root)
        for way, met in types_on_ways(root).items():
            print(f"  on the way, {way}: units {len(units[way])}, types {len(met)}")
            for name in sorted(met) if given.list else ():
                print(f"    {name}: {', '.join(met[name])}")
        print_names(root)
        print_comments(root)
        print_headers(root)
        print_python(root / "python" / "pccl")
        print_tests(root)
        print_documents(root)
    return 0


def sources(folder: Path) -> list[Path]:
    """Give the C++ and CUDA files of a folder and those below it."""
    return sorted(path for path in folder.rglob("*") if path.suffix in {".h", ".cc", ".cu", ".cuh"})


def all_sources(root: Path) -> list[Path]:
    """Give the C++ and CUDA files of the library: those of csrc, and the public headers."""
    return sources(root / "csrc") + sources(root / "include")


def print_modules(csrc: Path) -> None:
    """Print files by module, and what the fullest folder has."""
    paths = [path.relative_to(csrc) for path in csrc.rglob("*") if path.is_file()]
    modules = Counter(path.parts[0] for path in paths)
    folder, most = Counter(str(path.parent) for path in paths).most_common(1)[0]
    print(
        "  files: " + ", ".join(f"{module} {number}" for module, number in sorted(modules.items()))
    )
    print(f"  fullest folder: {folder}, {most}")
    lines = {path: len((csrc / path).read_text().splitlines()) for path in paths}
    headers = sum(path.suffix == ".h" and n <= SHORT_HEADER for path, n in lines.items())
    units = [n for path, n in lines.items() if path.suffix in {".cc", ".cu"}]
    short = sum(n < SHORT_UNIT for n in units)
    print(
        f"  {len(paths)} files; headers of at most {SHORT_HEADER} lines: {headers};"
        f" units under {SHORT_UNIT} lines: {short} of {len(units)}"
    )


def print_names(root: Path) -> None:
    """Print names of types that are defined more than once, and former names that are in use."""
    defined: Counter[str] = Counter()
    for path in all_sources(root):
        for name, _ in _TYPE.findall(without_noise(path.read_text())):
            defined[name] += 1
    del defined[""]  # aliases
    again = {name: n for name, n in defined.items() if n > 1}
    name, most = max(again.items(), key=lambda item: item[1], default=("none", 0))
    print(f"  names of types defined twice or more: {len(again)}; most often {name}, {most} times")
    former = sum(1 for path in all_sources(root) for _ in former_names(path, path.read_text()))
    print(f"  former names in use: {former}")


def print_comments(root: Path) -> None:
    """Print how often comments use words that make sentences hard to read."""
    text = " ".join(comments_of(path.read_text()) for path in all_sources(root))
    words = re.findall(r"[A-Za-z']+", text)
    per_thousand = 1000 / max(1, len(words))
    what = sum(word.lower() == "what" for word in words)
    speech = sum(word.lower() in SPEECH for word in words)
    sentences = [each.lstrip() for each in re.split(r"(?<=[.:;?!])\s+(?=[A-Z`])", text) if each]
    of = sum(each.startswith("Of ") for each in sentences)
    print(
        f"  comments of csrc: {len(words)} words; of 1000 are {what * per_thousand:.1f} 'what' and"
        f" {speech * per_thousand:.1f} verbs of speech; {100 * of / max(1, len(sentences)):.1f} %"
        " of the sentences begin with 'Of'"
    )


def print_headers(root: Path) -> None:
    """Print how many headers are installed, and how many of their declarations have no comment."""
    headers = public_headers.headers(root)
    bare = sum(1 for path in headers for _ in public_headers.undocumented(path))
    print(f"  installed headers: {len(headers)}; undocumented declarations: {bare}")


def comments_of(text: str) -> str:
    """Return the text of the line comments of a file, each block of them as one paragraph."""
    blocks = re.findall(r"(?:^[ \t]*//[^\n]*\n?)+|//[^\n]*", text, re.MULTILINE)
    return " ".join(
        re.sub(r"^[ \t]*//[/!]?<?[ \t]?", "", each, flags=re.MULTILINE) for each in blocks
    )


def print_python(package: Path) -> None:
    """Print how many modules lie flat in the package, and how long its longest stub is."""
    flat = [path for path in package.glob("*.py") if not path.name.startswith("__")]
    stubs = {path: len(path.read_text().splitlines()) for path in package.rglob("*.pyi")}
    stub, longest = max(stubs.items(), key=lambda item: item[1], default=(package, 0))
    print(f"  Python: {len(flat)} flat modules; the longest stub is {stub.name}, {longest} lines")


def print_tests(root: Path) -> None:
    """Print how many units of csrc have a C++ test of the same name."""
    units = [path for path in sources(root / "csrc") if path.suffix in {".cc", ".cu"}]
    tests = {path.name.removesuffix("_test.cc") for path in (root / "tests").rglob("*_test.cc")}
    same = sum(path.stem in tests for path in units)
    print(f"  units with a test of the same name: {same} of {len(units)}")


def print_documents(root: Path) -> None:
    """Print how many words the pages have that everybody meets first."""
    pages = ("README.md", "CHANGELOG.md", "benchmarks/README.md")
    counted = [f"{page} {len((root / page).read_text().split())}" for page in pages]
    print(f"  words: {', '.join(counted)}")


def types_on_ways(root: Path) -> dict[str, dict[str, list[str]]]:
    """Give the project's types that each way's functions name, and which do."""
    texts = [without_noise(path.read_text()) for path in all_sources(root)]
    types = {name for text in texts for match in _TYPE.findall(text) for name in match if name}
    words: dict[str, set[str]] = defaultdict(set)
    for path in sources(root / "csrc"):
        module = path.relative_to(root / "csrc").parts[0]
        if module not in MODULES:
            continue
        for found in functions(path):
            named = set(re.findall(r"\w+", _FOREIGN.sub("", found.text))) & types
            words[found.name] |= named
            words[f"{module}:{found.name}"] |= named
    ways: dict[str, dict[str, list[str]]] = {}
    for way, names in WAYS.items():
        met = ways[way] = defaultdict(list)
        for function in names:
            for name in words[function]:
                met[name].append(function)
    return ways


def units_on_ways(root: Path) -> dict[str, set[str]]:
    """Give the units (a source file and its header) with functions of each way."""
    units: dict[str, set[str]] = {way: set() for way in WAYS}
    for path in sources(root / "csrc"):
        module = path.relative_to(root / "csrc").parts[0]
        if module not in MODULES:
            continue
        unit = str(path.relative_to(root / "csrc").with_suffix(""))
        names = {found.name for found in functions(path)}
        names |= {f"{module}:{name}" for name in names}
        for way, functions_of_way in WAYS.items():
            if not names.isdisjoint(functions_of_way):
                units[way].add(unit)
    return units


if __name__ == "__main__":
    sys.exit(main())
