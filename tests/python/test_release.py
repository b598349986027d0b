# SPDX-License-Identifier: Apache-2.0
"""tools/release.sh tags a consistent tree, and refuses others, in small repositories."""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
CHANGELOG = """# Changelog

## [0.2.0] - unreleased

### Added

- A ring.

## [0.1.0]

The first one.
"""
FILES = {
    ".gitignore": "/dist/\n",
    "CHANGELOG.md": CHANGELOG,
    "python/pccl/_version.py": '__version__ = "0.2.0"\n',
    "docs/p2p.md": "find_package(pccl 0.2 REQUIRED)\n",
    # Builds nothing, as the release is to be judged, and not the wheels.
    "tools/wheel.sh": """#!/bin/sh
mkdir -p dist/$TORCH
echo wheel for $TORCH >dist/$TORCH/pccl_collectives-${WHEEL_VERSION:-0.2.0}-cp311.whl
""",
    "tools/check_wheel.py": """import os, sys
sys.exit(os.environ.get("FAULT") and f"{sys.argv[1]}: {os.environ['FAULT']}")
""",
}


class Repository:
    """A repository with the tool, and the files that it looks at."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in FILES.items():
            self.write(name, text)
        (root / "tools/wheel.sh").chmod(0o755)
        shutil.copy(TOOLS / "release.sh", root / "tools")
        self.git("init", "--quiet", "--initial-branch=main")
        for name in ("name", "email"):
            self.git("config", f"user.{name}", "somebody")
        self.commit()

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=one")

    def release(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "tools/release.sh"), *arguments],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def refusal(self, *arguments: str, **environment: str) -> list[str]:
        """Return the lines of a run that must fail, and must leave no tag."""
        done = self.release(*(arguments or ("0.2.0",)), **environment)
        assert done.returncode == 1, done.stdout
        assert self.git("tag") == ""
        return done.stderr.splitlines()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def test_a_release_is_dated_checksummed_and_tagged(repository: Repository) -> None:
    before = today()
    done = repository.release("0.2.0", TORCHES="torch==2.13.0")
    assert done.returncode == 0, done.stderr
    heading = repository.git("show", "v0.2.0:CHANGELOG.md").splitlines()[2]
    assert heading in {f"## [0.2.0] - {day}" for day in (before, today())}
    assert repository.git("cat-file", "-t", "v0.2.0") == "tag\n"
    message = repository.git("for-each-ref", "--format=%(contents)", "refs/tags/v0.2.0").strip()
    assert message == "PCCL 0.2.0\n\n### Added\n\n- A ring."
    assert repository.git("rev-parse", "v0.2.0^{commit}") == repository.git("rev-parse", "HEAD")
    assert repository.git("status", "--porcelain") == ""
    dist = repository.root / "dist"
    names = {line.split()[1] for line in (dist / "SHA256SUMS").read_text().splitlines()}
    wheel = "pccl_collectives-0.2.0-cp311.whl"
    assert names == {f"none/{wheel}", f"torch==2.13.0/{wheel}"}
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=dist, check=True)


def test_a_dry_run_neither_commits_nor_tags(repository: Repository) -> None:
    head = repository.git("rev-parse", "HEAD")
    done = repository.release("0.2.0", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert (repository.root / "dist/SHA256SUMS").exists()
    assert repository.git("rev-parse", "HEAD") == head
    assert repository.git("tag") == ""
    assert repository.git("status", "--porcelain") == ""


def test_the_tree_alone_is_checked_without_wheels(repository: Repository) -> None:
    assert repository.release("0.2.0", "--dry-run", "--no-wheels").returncode == 0
    assert not (repository.root / "dist").exists()


def test_nothing_is_tagged_without_wheels(repository: Repository) -> None:
    assert repository.refusal("0.2.0", "--no-wheels") == [
        "release.sh: --no-wheels would tag what was not built: add --dry-run"
    ]


@pytest.mark.parametrize("arguments", [("0.2",), ("v0.2.0",), ("0.2.0", "0.3.0"), ("--tag",)])
def test_odd_arguments_are_refused(repository: Repository, arguments: tuple[str, ...]) -> None:
    assert repository.refusal(*arguments)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (
            "python/pccl/_version.py",
            '__version__ = "0.1.0"\n',
            "python/pccl/_version.py has version '0.1.0': set __version__ = \"0.2.0\"",
        ),
        (
            "docs/p2p.md",
            "find_package(pccl 0.1 REQUIRED)\n",
            "docs/p2p.md has find_package(pccl 0.1): write find_package(pccl 0.2 ...)",
        ),
        (
            "CHANGELOG.md",
            CHANGELOG.replace("unreleased", "2020-01-01"),
            "CHANGELOG.md dates 0.2.0 '2020-01-01': write 'unreleased', or ",
        ),
        (
            "CHANGELOG.md",
            CHANGELOG.replace("# [0.2.0]", "# [0.3.0]"),
            "the first section of CHANGELOG.md is '## [0.3.0] - unreleased': "
            "begin with '## [0.2.0] - unreleased'",
        ),
        (
            "CHANGELOG.md",
            CHANGELOG.replace("- A ring.", ""),
            "CHANGELOG.md has no entries for 0.2.0: "
            "add one line a change, each with '- ' before it",
        ),
    ],
)
def test_each_failing_check_has_a_line(
    repository: Repository, name: str, text: str, line: str
) -> None:
    repository.write(name, text)
    repository.commit()
    (found,) = repository.refusal()
    assert found.startswith(f"release.sh: {line}")


def test_all_failing_checks_are_shown_at_once(repository: Repository) -> None:
    repository.write("python/pccl/_version.py", '__version__ = "0.1.0"\n')
    repository.write("dist/none/pccl_collectives-0.1.0-cp311.whl", "")
    lines = repository.refusal()
    assert [line.split(": ")[1] for line in lines] == [
        "the tree has changes, python/pccl/_version.py among them",
        "python/pccl/_version.py has version '0.1.0'",
        "dist/ holds wheels of another build",
    ]


def test_a_tag_is_not_moved(repository: Repository) -> None:
    repository.git("tag", "v0.2.0")
    done = repository.release("0.2.0")
    assert done.returncode == 1
    assert "tag v0.2.0 is there" in done.stderr


def test_wheels_that_are_refused_are_not_tagged(repository: Repository) -> None:
    lines = repository.refusal(FAULT="names /home")
    assert lines[0] == "dist/none/pccl_collectives-0.2.0-cp311.whl: names /home"
    assert "tools/check_wheel.py refuses" in lines[1]
    assert not (repository.root / "dist/SHA256SUMS").exists()


def test_wheels_of_another_version_are_not_tagged(repository: Repository) -> None:
    (line,) = repository.refusal(WHEEL_VERSION="0.1.0")
    assert "dist/none/pccl_collectives-0.1.0-cp311.whl is not a wheel of 0.2.0" in line


def test_a_release_may_be_repeated_after_its_wheels_failed(repository: Repository) -> None:
    repository.refusal(FAULT="names /home")
    shutil.rmtree(repository.root / "dist")
    assert repository.release("0.2.0").returncode == 0
    assert repository.git("tag") == "v0.2.0\n"
