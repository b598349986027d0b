# SPDX-License-Identifier: Apache-2.0
"""NIXL's own C++ tests over one of its plugins: ``python upstream_cpp.py NIXL_SOURCES PLUGIN``.

Its tests of transfers, metadata and errors are compiled against its sources, with the few lines of
abseil that they need (``shim``), and linked with the libraries of its wheel, which lies on
PYTHONPATH. Each test runs in a process of its own; README.md lists what came of them.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SHIM = Path(__file__).parent / "shim"
LOG = Path(__file__).parents[2] / "plugins" / "nixl" / "include"
HEADERS = ("common.h", "gpu_utils.h")
TESTS = ("test_transfer.cpp", "metadata_exchange.cpp", "error_handling.cpp", "md_manager.cpp")
SOURCES = ("common.cpp", *TESTS)
INCLUDES = (
    "src/api/cpp",
    "src/core",
    "src/core/telemetry",
    "src/infra",
    "src/utils",
    "src/utils/common",
)
LIBRARIES = ("nixl", "nixl_common", "nixl_build", "serdes", "stream")
PACKAGES = ("nixl-cu12", "nixl-cu13")
PASSED, FAILED, SKIPPED, LATE = "passed", "failed", "skipped", "not ended"
PATIENCE = 240  # seconds for a test


def library_folders() -> list[Path]:
    """Return where the wheel of NIXL has its libraries, and those that they need."""
    for package in PACKAGES:
        try:
            files = importlib.metadata.distribution(package).files or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found = {Path(str(f.locate())).parent for f in files if re.search(r"\.so[.\d]*$", f.name)}
        return sorted(folder for folder in found if folder.name.endswith(".libs"))
    sys.exit(f"none of {', '.join(PACKAGES)} is on PYTHONPATH")


def changed(text: str, plugin: str) -> str:
    """Return a source that asks for the plugin, and looks at the log by way of the shim."""
    text = re.sub(r'(NIXL_INSTANTIATE_TEST\([^)]*?)"UCX"', rf'\1"{plugin}"', text)
    text = text.replace('createBackend("UCX"', f'createBackend("{plugin}"')
    text = text.replace("'UCX'", f"'{plugin}'")  # in messages of the log
    if plugin != "UCX":  # a parameter of UCX alone
        text = re.sub(r"EXPECT_EQ\(ucx_err_handling_mode_peer, .*?\);", "", text)
    # Of NIXL's inside, which is another one in the wheel.
    text = text.replace('#include "plugin_manager.h"', "")
    text = re.sub(r"nixlPluginManager::getInstance\(\)\.addPluginDirectory\(\w+\);", "", text)
    # The wheel's own folder of plugins will do.
    text = re.sub(r'm_env\.addVar\("NIXL_PLUGIN_DIR".*?\);', "", text)
    reads = r"(LogIgnoreGuard::(?:~LogIgnoreGuard\(\)|getIgnoredCount\(\) const noexcept) \{)"
    return re.sub(reads, r"\1 pccl_shim::drain_log();", text)


def build(sources: Path, plugin: str, folder: Path) -> Path:
    """Return the program of all tests."""
    tests = sources / "test" / "gtest"
    for name in (*HEADERS, *SOURCES):
        (folder / name).write_text(changed((tests / name).read_text(), plugin))
    libraries = library_folders()
    flags = ["-std=c++17", "-O1", '-DBUILD_DIR=""', f"-I{folder}", f"-I{SHIM}", f"-I{LOG}"]
    flags += [f"-I{sources / each}" for each in INCLUDES]
    units = [folder / each for each in SOURCES] + sorted(SHIM.glob("*.cc"))

    def compiled(unit: Path) -> Path:
        into = folder / f"{unit.stem}.o"
        subprocess.run(["c++", *flags, "-c", unit, "-o", into], check=True)
        return into

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, units))
    program = folder / "tests"
    places = [f"-L{each}" for each in libraries] + [f"-Wl,-rpath,{each}" for each in libraries]
    named = [f"-l{each}" for each in LIBRARIES]
    beneath = [f"-Wl,-rpath-link,{each}" for each in libraries]
    link = ["c++", *objects, *places, *beneath, *named, "-lgmock", "-lgtest", "-lpthread"]
    subprocess.run([*link, "-o", program], check=True)
    return program


def names_of(program: Path, pattern: str) -> list[str]:
    """Return all tests of a program, as gtest lists them."""
    command = [program, "--gtest_list_tests", f"--gtest_filter={pattern}"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names, suite = [], ""
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if name.startswith("  "):
            names.append(suite + name.strip())
        elif name.endswith("."):
            suite = name
    return names


def outcome_of(program: Path, name: str) -> str:
    """Run one test in a process of its own; what a failure said is printed."""
    try:
        done = subprocess.run(
            [program, f"--gtest_filter={name}"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return LATE
    if done.returncode == 0:
        return SKIPPED if "[  SKIPPED ]" in done.stdout else PASSED
    print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
    return FAILED


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", type=Path)
    parser.add_argument("plugin")
    parser.add_argument("--filter", default="*", help="as of gtest")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = build(options.sources, options.plugin, Path(folder))
        outcomes = {}
        for name in names_of(program, options.filter):
            outcomes[name] = outcome_of(program, name)
            print(f"{outcomes[name]:>9}  {name}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in Counter(outcomes.values()).items()))
    return int(bool({FAILED, LATE} & set(outcomes.values())))


if __name__ == "__main__":
    sys.exit(main())
