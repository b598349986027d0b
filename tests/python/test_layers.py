# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py: this tree is clean, and each rule catches a small tree that breaks it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CHECKER = REPOSITORY / "tools" / "check_layers.py"

# (file, its text, the rule it breaks, the line of the break); headers get their guard below.
BAD_FILES = [
    ("csrc/topo/graph/graph.cc", '#include "csrc/comm/communicator.h"\n', "layer", 1),
    ("csrc/base/status.cc", '\n#include "csrc/abi/wire.h"\n', "layer", 2),
    ("csrc/torch/work.cc", '#include "csrc/bindings/bind_comm.h"\n', "layer", 1),
    ("csrc/p2p/session.cc", '#include "csrc/comm/communicator.h"\n', "layer", 1),
    ("csrc/comm/links/link_program.cc", '#include "csrc/comm/shm/shm_segment.h"\n', "layer", 1),
    ("csrc/device/copy_engine_gather.cc", '#include "csrc/transport/link.h"\n', "layer", 1),
    ("csrc/kernels/device/copy.cuh", '#include "csrc/base/text.h"\n', "layer", 2),
    ("csrc/transport/tcp/link.cc", '#include "csrc/transport/shm/ring.h"\n', "sibling", 1),
    ("csrc/sys/socket/socket.cc", '#include "csrc/sys/cuda/driver.h"\n', "sibling", 1),
    ("csrc/base/text.cc", '#include "text.h"\n', "spelling", 1),
    ("csrc/attic/old.cc", '#include "csrc/base/text.h"\n', "module", 1),
    ("csrc/comm/a.cc", "#include <pccl/communicator.h>\n", "public", 1),
    ("csrc/transport/rma.cc", "\n#include <pccl/memory.h>\n", "public", 2),
    ("include/pccl/status.h", '#include "csrc/base/text.h"\n', "public", 2),
    ("examples/a.cc", '#include "csrc/comm/communicator.h"\n', "public", 1),
    ("csrc/comm/a.cc", 'const char* x = std::getenv("HOME");\n', "environment", 1),
    ("csrc/comm/a.cc", "auto t = std::chrono::steady_clock::now();\n", "clock", 1),
    ("csrc/comm/a.cc", "std::this_thread::sleep_for(pause);\n", "clock", 1),
    ("csrc/comm/a.cc", "\n\nstd::thread worker(run);\n", "thread", 3),
    ("csrc/transport/tcp/a.cc", "int fd = ::socket(AF_INET, SOCK_STREAM, 0);\n", "socket", 1),
    ("csrc/transport/shm/a.cc", "setsockopt(fd, 1, 2, p, n);\n", "socket", 1),
    ("csrc/comm/a.cc", "#include <ATen/Tensor.h>\n", "torch", 1),
    ("csrc/comm/a.cc", "#include <pybind11/pybind11.h>\n", "python", 1),
    ("csrc/comm/a.cc", "cudaMalloc(&p, n);\n", "cuda", 1),
    ("csrc/sys/verbs_probe.cc", "ibv_open_device(d);\n", "verbs", 1),
    ("csrc/comm/a.cc", "#include <spdlog/spdlog.h>\n", "logger", 1),
    ("csrc/transport/a.cc", "#include <openssl/hmac.h>\n", "crypto", 1),
    ("csrc/schedule/a.cc", 'throw std::runtime_error("no");\n', "exception", 1),
]

GOOD_FILES = [
    ("csrc/base/config.cc", 'const char* x = std::getenv("HOME");\n'),
    ("csrc/base/clock.cc", "auto t = std::chrono::steady_clock::now();\n"),
    ("csrc/base/progress.cc", "std::thread worker(run);\n"),
    ("csrc/sys/socket/socket.cc", "int fd = ::socket(AF_INET, SOCK_STREAM, 0);\n"),
    ("csrc/sys/cuda/driver.cc", "cudaMalloc(&p, n);\n"),
    ("csrc/torch/backend.cc", "#include <torch/extension.h>\n"),
    ("csrc/comm/a.cc", "// never call getenv here\n/* nor\n   cudaMalloc() */\n"),
    ("csrc/comm/a.cc", 'log("::connect(fd) failed; // std::thread");\nclock.sleep_for(pause);\n'),
    ("csrc/comm/a.cc", "auto f = std::bind(run, 1);\nTcp::connect(peer);\nlink->connect(x);\n"),
    ("csrc/transport/tcp/link.cc", '#include "csrc/transport/link.h"\n'),
    ("csrc/transport/tcp/link.cc", '#include "csrc/sys/socket/socket.h"\n'),
    ("csrc/p2p/session.cc", '#include "csrc/transport/rma.h"\n'),
    ("csrc/transport/tcp/link.cc", '#include "csrc/transport/control/handshake.h"\n'),
    ("csrc/comm/selection/selector.cc", '#include "csrc/comm/shm/shm_segment.h"\n'),
    ("csrc/device/copy_engine_gather.cc", '#include "csrc/transport/nvlink/symmetric_heap.h"\n'),
    ("csrc/base/a.cc", "#include <pccl/status.h>\n"),
    ("csrc/kernels/device/a.cuh", "#include <pccl/types.h>\n"),
    ("csrc/p2p/a.cc", "#include <pccl/memory.h>\n"),
    ("include/pccl/status.h", "#include <pccl/types.h>\n"),
    ("examples/a.cc", "#include <pccl/communicator.h>\n"),
    ("csrc/kernels/all_reduce.cu", '#include "csrc/kernels/device/copy.cuh"\n'),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copy(REPOSITORY / "layers.toml", tmp_path)
    shutil.copy(REPOSITORY / "CMakeLists.txt", tmp_path)
    (tmp_path / "csrc").mkdir()
    return tmp_path


def write(tree: Path, path: str, text: str) -> None:
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    guard = "#pragma once\n" if file.suffix in {".h", ".cuh"} else ""
    file.write_text(guard + text)


def run_checker(root: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, CHECKER, root], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


def test_this_repository_keeps_its_layers() -> None:
    status, lines = run_checker(REPOSITORY)
    assert (status, lines) == (0, ["check_layers: ok"])


@pytest.mark.parametrize(("path", "text", "rule", "line"), BAD_FILES)
def test_a_broken_rule_is_named_with_its_place(
    tree: Path, path: str, text: str, rule: str, line: int
) -> None:
    write(tree, path, text)
    status, lines = run_checker(tree)
    assert status == 1
    assert lines[0].startswith(f"{path}:{line}: {rule}: ")
    assert lines[1:] == ["check_layers: 1 violation(s)"]


@pytest.mark.parametrize(("path", "text"), GOOD_FILES)
def test_what_is_allowed_passes(tree: Path, path: str, text: str) -> None:
    write(tree, path, text)
    assert run_checker(tree) == (0, ["check_layers: ok"])


def test_a_source_includes_its_own_header_first(tree: Path) -> None:
    write(tree, "csrc/base/a.h", "")
    write(tree, "csrc/base/a.cc", '#include <vector>\n\n#include "csrc/base/a.h"\n')
    status, lines = run_checker(tree)
    assert status == 1
    assert lines[0] == 'csrc/base/a.cc:1: own-header: include "csrc/base/a.h" first'


def test_a_header_without_guard_is_found(tree: Path) -> None:
    (tree / "csrc/base").mkdir()
    (tree / "csrc/base/a.h").write_text("// a comment\nint f();\n")
    status, lines = run_checker(tree)
    assert status == 1
    assert lines[0].startswith("csrc/base/a.h:1: guard: ")


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ('base = ["comm"]', "the modules form a circle: base, "),
        ('base = ["cellar"]', "base uses cellar, which is no module"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(tree: Path, entry: str, complaint: str) -> None:
    table = (tree / "layers.toml").read_text()
    (tree / "layers.toml").write_text(
        re.sub(r"^base = \[\](?=\s)", entry, table, flags=re.MULTILINE)
    )
    status, lines = run_checker(tree)
    assert status == 1
    assert any(complaint in line for line in lines)


def test_a_public_header_that_no_module_is_given_is_found(tree: Path) -> None:
    write(tree, "include/pccl/attic.h", "")
    status, lines = run_checker(tree)
    assert status == 1
    assert lines[0].startswith("layers.toml:1: public: ")
    assert "<pccl/attic.h>" in lines[0]


def test_cmake_links_modules_by_the_same_table(tree: Path) -> None:
    cmake = (tree / "CMakeLists.txt").read_text()
    changed = cmake.replace("NAME topo DEPS base sys", "NAME topo DEPS base sys comm")
    assert changed != cmake
    (tree / "CMakeLists.txt").write_text(changed)
    status, lines = run_checker(tree)
    assert status == 1
    assert re.fullmatch(r"CMakeLists\.txt:\d+: cmake: topo needs DEPS base sys", lines[0])


def include(*paths: str) -> str:
    return "".join(f'#include "csrc/{path}"\n' for path in paths)


def test_two_headers_that_include_each_other_are_a_circle(tree: Path) -> None:
    write(tree, "csrc/base/a.h", include("base/b.h"))
    write(tree, "csrc/base/b.h", include("base/a.h"))
    status, lines = run_checker(tree)
    assert status == 1
    names = "of the units csrc/base/a, csrc/base/b none may reach itself"
    assert lines[:2] == [
        f"csrc/base/a.h:2: circle: csrc/base/a includes csrc/base/b; {names}",
        f"csrc/base/b.h:2: circle: csrc/base/b includes csrc/base/a; {names}",
    ]


def test_a_header_and_its_sources_are_one_unit(tree: Path) -> None:
    write(tree, "csrc/base/a.h", "")
    write(tree, "csrc/base/a_cuda.cc", include("base/a.h", "base/b.h"))
    write(tree, "csrc/base/b.h", include("base/a.h"))
    assert run_checker(tree)[0] == 1


@pytest.mark.parametrize(
    "text", [include("base/b.h") + "void Wide::f() {}\n", include("base/wide.h", "base/b.h")]
)
def test_a_source_without_a_header_belongs_to_the_one_it_implements(tree: Path, text: str) -> None:
    write(tree, "csrc/base/wide.h", "")
    write(tree, "csrc/base/b.h", include("base/wide.h"))
    write(tree, "csrc/base/part.cc", text + include("base/wide.h"))
    status, lines = run_checker(tree)
    assert status == 1
    assert any("csrc/base/wide includes csrc/base/b;" in line for line in lines)


def test_a_folder_that_reaches_itself_through_others_is_a_circle(tree: Path) -> None:
    write(tree, "csrc/topo/graph/a.h", include("topo/xml/a.h"))
    write(tree, "csrc/topo/xml/a.h", include("topo/machine/a.h"))
    write(tree, "csrc/topo/machine/a.h", include("topo/graph/b.h"))
    write(tree, "csrc/topo/graph/b.h", "")
    status, lines = run_checker(tree)
    assert status == 1
    assert len(lines) == 4
    assert "of the folders csrc/topo/graph, csrc/topo/machine, csrc/topo/xml none" in lines[0]


def test_a_module_may_use_its_submodules_or_the_submodules_the_module(tree: Path) -> None:
    write(tree, "csrc/topo/topology.h", include("topo/graph/a.h"))
    write(tree, "csrc/topo/graph/a.h", "")
    write(tree, "csrc/topo/detect/a.h", include("topo/topology.h"))
    assert run_checker(tree) == (0, ["check_layers: ok"])
