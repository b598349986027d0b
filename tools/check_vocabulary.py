# SPDX-License-Identifier: Apache-2.0
"""Check that former names, which are no terms of the field, are not in use.

Looked for are whole identifiers and names of files, in code alone: English words are free. A name
that is needed in another meaning leaves the table.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
CODE = {".h", ".cc", ".cu", ".cuh", ".py", ".pyi", ".cmake", ".toml", ".txt", ".sh"}

#: Former identifiers, or stems of files, and what they are called now.
TERMS = {
    "AlikeTextsTest": "FrontCodingTest",
    "Approach": "ConnectionSetup",
    "Attendance": "ProgressGuard",
    "Board": "ShmSegment",
    "BoardAlgorithm": "ShmAlgorithm",
    "BoardCall": "ShmCall",
    "BoardShape": "ShmShape",
    "Crew": "ThreadGroup",
    "Departure": "CloseContext",
    "DeviceDesk": "DeviceProgramState",
    "DeviceMeeting": "DeviceRendezvous",
    "Dial": "PendingConnect",
    "DialArgs": "ConnectArgs",
    "Farewell": "CloseReason",
    "FarewellListener": "CloseReasonReceiver",
    "GpuLane": "GpuBackend",
    "GpuMoment": "GpuEvent",
    "GpuPassage": "GpuStagingPath",
    "GpuSeat": "GpuPlacement",
    "GpuSink": "GpuReceiver",
    "Greeting": "EntryLines, HandshakeMessage",
    "Handing": "CoreTransfer",
    "Hints": "PointerCache",
    "Joining": "Rendezvous",
    "LateAcks": "DelayedAcks",
    "LifeSign": "LivenessFutex",
    "LineSeat": "LL128Thread",
    "Lookout": "Poller",
    "Parcel": "FdMessage",
    "PeerWord": "ControlMessage",
    "Postings": "PeerPointers",
    "Puller": "CopyEngineGather",
    "RelayLock": "HandoffLock",
    "Sayings": "DeferredSends",
    "Situation": "RankStatus",
    "StreamMoment": "StreamEvent",
    "Succession": "CoordinatorFailover",
    "Tellers": "CallbackGuard",
    "WideLine": "LL128Line",
    "Witness": "GroupProbe",
    "WordListener": "ControlReceiver",
    "alike_texts": "front_coding",
    "board_algorithm": "shm_algorithm",
    "board_executor": "shm_executor",
    "dissent": "mismatch",
    "dissenter": "mismatched_peer",
    "enroll": "register_rank",
    "given_capsules": "environment_capsules",
    "gpu_lane": "gpu_backend",
    "greet": "enter, accept_hello",
    "heir": "successor",
    "house_figures": "code_metrics",
    "inquest": "graph_walk, wait_for_graph",
    "is_aside": "is_fallback",
    "kEngines": "kCopyEngine",
    "kPatience": "kTimeout",
    "lobby": "pre_join",
    "moment_of": "event_of",
    "outlet": "channel_state",
    "pccl_room": "pccl_module",
    "peer_word": "control_message",
    "puller": "copy_engine_gather",
    "retreat": "withdraw",
    "told_by_all": "all_gather_values",
    "wide_lines": "ll128",
}
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def former_names(path: Path, text: str) -> Iterator[str]:
    """Give one line for each former name in the name of a file, or in its text."""
    for stem in {path.stem, path.stem.removesuffix("_test").removeprefix("test_")} & TERMS.keys():
        yield f"{path}: {stem} is called {TERMS[stem]}"
    for number, line in enumerate(text.splitlines(), 1):
        for name in sorted(set(IDENTIFIER.findall(line)) & TERMS.keys()):
            yield f"{path}:{number}: {name} is called {TERMS[name]}"


def code_files(root: Path) -> Iterator[Path]:
    """Give the files of code that git tracks, but this one."""
    command = ["git", "-C", str(root), "ls-files", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        path = root / name
        is_data = name.startswith(("tests/data/", "benchmarks/results/"))
        if path.suffix in CODE and not is_data and path.name != Path(__file__).name:
            yield path


def main() -> int:
    """Print all former names that are in use."""
    found = [
        line
        for path in code_files(ROOT)
        if path.exists()
        for line in former_names(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    ]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
