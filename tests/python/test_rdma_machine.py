# SPDX-License-Identifier: Apache-2.0
"""What tools/rdma_machine.py and tools/rdma_suites.py refuse and skip; no machine runs."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
GOOD = "gate 1 90 ci tools/rdma/gate.sh\npair 2 60 - build/dev/pair_test --gtest_filter=*Verbs*\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the tools, in which nothing is built."""
    shutil.copytree(TOOLS, tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(clone: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def write_suites(clone: Path, text: str) -> None:
    (clone / "tools/rdma/suites.txt").write_text(text)


def pretend_kernel(clone: Path) -> None:
    (clone / "build/rdma").mkdir(parents=True)
    (clone / "build/rdma/vmlinux").touch()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--machines", "3", "--", "true"], "--machines 3: 1 or 2"),
        (["--timeout", "0", "--", "true"], "--timeout 0: at least 1 s"),
        (["--cpus", "0", "--", "true"], "--cpus 0: from 1 to 8"),
        (["--memory", "100", "--", "true"], "--memory 100: at least 512 MiB"),
        (["--kill-after", "2", "--", "true"], "--kill-after ends machine 2: add --machines 2"),
        (
            ["--machines", "2", "--timeout", "5", "--kill-after", "9", "--", "true"],
            "--kill-after 9.0: from 0 to less than --timeout 5",
        ),
        ([], "the following arguments are required: command"),
        (["--machines", "two", "--", "true"], "invalid int value: 'two'"),
    ],
)
def test_a_command_line_is_refused_with_the_reason(
    clone: Path, arguments: list[str], reason: str
) -> None:
    done = run(clone, "tools/rdma_machine.py", "run", *arguments)
    assert done.returncode == 2
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_a_kernel_the_next_step_is_named(clone: Path) -> None:
    for command in (["tools/rdma_machine.py", "run", "--", "true"], ["tools/rdma_suites.py"]):
        done = run(clone, *command)
        assert done.returncode == 77
        assert "build/rdma has no kernel: run tools/setup_rdma.sh" in done.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the counter is one of x86-64")
def test_the_frequency_for_the_kernel_is_that_of_the_counter(clone: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, 'tools'); import rdma_machine as tool\n"
        "print(tool.tsc_khz(), tool.tsc_khz())"
    )
    one, other = (int(word) for word in run(clone, "-c", script).stdout.split())
    assert abs(one - other) < one / 50
    assert 500_000 < one < 10_000_000


def test_setup_says_what_is_missing(clone: Path) -> None:
    done = subprocess.run(
        ["tools/setup_rdma.sh", "check"],
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 77
    assert "no machine for RDMA tests: " in done.stdout
    assert not (clone / "build").exists()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("gate 1 90 ci", "not 'name machines seconds ci|- command'"),
        ("more 3 90 - true", "3 machines: 1, 2, or 2-1 where the second one ends"),
        ("more 1 soon - true", "soon seconds: a whole number above 0"),
        ("more 1 90 yes true", "yes: 'ci' or '-'"),
        ("more 2 90 ci true", "CI boots one machine alone"),
        ("more 2-1 90 ci true", "CI boots one machine alone"),
        ("gate 1 90 - true", "a second suite gate"),
    ],
)
def test_a_line_of_the_list_is_refused_with_its_place(clone: Path, line: str, reason: str) -> None:
    write_suites(clone, f"# comment\n{GOOD}{line}\n")
    done = run(clone, "tools/rdma_suites.py")
    assert done.returncode == 2
    assert f"tools/rdma/suites.txt:4: {reason}" in done.stderr


def test_an_unknown_suite_is_refused_with_those_that_exist(clone: Path) -> None:
    write_suites(clone, GOOD)
    done = run(clone, "tools/rdma_suites.py", "gate", "pear")
    assert done.returncode == 2
    assert "no suite pear: there are gate, pair, and all and ci" in done.stderr


def test_the_list_of_the_clone_has_a_gate_first_which_ci_runs(clone: Path) -> None:
    pretend_kernel(clone)
    script = (
        "import sys; sys.path.insert(0, 'tools'); import rdma_suites as tool\n"
        "suites = tool.parse(tool.LIST.read_text(), 'suites.txt')\n"
        "print(suites[0].name, suites[0] in tool.select(suites, 'ci'))"
    )
    assert run(clone, "-c", script).stdout == "gate True\n"


def test_a_suite_in_which_a_machine_ends_has_a_boot_of_its_own(clone: Path) -> None:
    write_suites(clone, f"{GOOD}end 2-1 9 - true\nlast 2-1 9 - true\nother 1 5 - true\n")
    script = (
        "import sys; sys.path.insert(0, 'tools'); import rdma_suites as tool\n"
        "suites = tool.parse(tool.LIST.read_text(), 'suites.txt')\n"
        "print(*[[suite.name for suite in boot] for boot in tool.boots_of(suites)], sep=';')"
    )
    assert run(clone, "-c", script).stdout == "['gate', 'other'];['pair'];['end'];['last']\n"


def results_of(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the lines of the table of results, by suite."""
    return {line.split()[0]: line for line in done.stdout.splitlines() if line}


def test_a_suite_without_its_files_or_tests_fails_with_the_reason(clone: Path) -> None:
    pretend_kernel(clone)
    (clone / "build/dev").mkdir(parents=True)
    program = clone / "build/dev/empty_test"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    write_suites(
        clone,
        "binary 1 5 - build/dev/no_test --gtest_filter=A*\n"
        "filter 1 5 - build/dev/empty_test --gtest_filter=A*\n"
        "files 1 5 ci PYTHONPATH=build/none python -m pytest tests/rdma/test_*.py\n"
        "second 1 5 - build/dev/empty_test && PYTHONPATH=build/none python tests/none.py\n"
        "both 1 5 - ls build/rdma/nixl build/dev/no_test\n",
    )
    done = run(clone, "tools/rdma_suites.py")
    assert done.returncode == 1
    results = results_of(done)
    assert results["binary"].endswith("  there is no build/dev/no_test")
    assert results["filter"].endswith("  build/dev/empty_test has no test for --gtest_filter=A*")
    assert results["files"].endswith("  there is no tests/rdma/test_*.py")
    assert results["second"].endswith("  there is no tests/none.py")
    assert results["both"].endswith("  there is no build/dev/no_test")
    assert "rdma_suites: failed: binary, filter, files, second, both" in done.stdout


def test_a_suite_of_a_missing_package_is_skipped_with_the_reason(clone: Path) -> None:
    pretend_kernel(clone)
    write_suites(clone, "plugin 1 5 - ls build/dev/python/pccl/libplugin_PCCL.so build/rdma/nixl\n")
    done = run(clone, "tools/rdma_suites.py")
    assert done.returncode == 0
    assert results_of(done)["plugin"].endswith(
        "  skipped: NIXL's headers are missing: tools/setup_nixl.sh"
    )


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the machine is one of x86-64")
def test_a_machine_that_does_not_start_is_a_failure(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_kernel(clone)
    (clone / "build/rdma/initrd.gz").touch()
    emulator = clone / "bin/qemu-system-x86_64"
    emulator.parent.mkdir()
    emulator.write_text("#!/bin/sh\n\n")  # ends at once
    emulator.chmod(0o755)
    monkeypatch.setenv("PATH", str(emulator.parent), prepend=":")
    write_suites(clone, "gate 1 9 ci true\nother 1 9 - true\npair 2 9 - true\n")
    done = run(clone, "tools/rdma_suites.py")
    assert done.returncode == 1, done.stderr
    results = results_of(done)
    assert results["gate"].endswith("  the machine did not start")
    assert results["other"].endswith("  the machine did not start")
    assert results["pair"].endswith("  did not run")
    assert "rdma_suites: failed: gate, other, pair" in done.stdout


def test_each_exception_of_the_gate_has_a_reason(clone: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, 'tools/rdma'); import gate; from pathlib import Path\n"
        "found = gate.Expected.read(Path('tools/rdma/gate_expected.txt'))\n"
        "assert found.counts and all(len(numbers) == 3 for numbers in found.counts.values())\n"
        "named = {**found.failing, **found.left_out}\n"
        "print([name for name, why in named.items() if not why], len(found.failing),\n"
        "      sum(numbers[2] for numbers in found.counts.values()))"
    )
    without_reason, listed, counted = run(clone, "-c", script).stdout.rsplit(maxsplit=2)
    assert without_reason == "[]"
    assert listed == counted


def test_the_gate_reports_what_differs_from_the_list(clone: Path) -> None:
    (clone / "expected.txt").write_text("test_a 1 0 0\ntest_b 1 0 1\n! test_b.B.test_two: broken\n")
    script = """
import sys; sys.path.insert(0, 'tools/rdma'); import gate; from pathlib import Path
result = gate.Result()
result.counts['test_a'].update({'fail': 1})
result.counts['test_b'].update({'pass': 2})
result.failed['test_a.A.test_one'] = 'refused'
print(*gate.Expected.read(Path('expected.txt')).differences(result), sep='\\n')
"""
    assert run(clone, "-c", script).stdout.splitlines() == [
        "test_a: 0 pass, 0 skip, 1 fail instead of 1 pass, 0 skip, 0 fail",
        "test_b: 2 pass, 0 skip, 0 fail instead of 1 pass, 0 skip, 1 fail",
        "test_a.A.test_one: refused",
        "test_b.B.test_two is listed as failing, and does not fail",
    ]
