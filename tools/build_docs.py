# SPDX-License-Identifier: Apache-2.0
"""Build the documentation site, build/docs; what Sphinx warns of fails.

    build_docs.py [--changed]

With --changed, only where something that the site is made of differs, as tools/changed_files.py
has it. A file that is gone counts: a page may link to it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

import changed_files

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "docs"
TOOLS = ("furo", "myst-parser", "sphinx")


def is_part(file: Path) -> bool:
    """Return whether a file that differs is a source of the site."""
    headers = (ROOT / "docs/site/cpp.md").read_text().splitlines()
    return (
        not file.exists()
        or file.suffix == ".md"
        or any(file.is_relative_to(ROOT / folder) for folder in ("docs", "python/pccl"))
        or str(file.relative_to(ROOT)) in {*headers, "cmake/read_stub.py", "tools/build_docs.py"}
    )


def why_not() -> str | None:
    """Return the reason why there is nothing to build; None where there is something."""
    base = changed_files.base()
    if base is None or any(base.has_other_pin(tool) for tool in TOOLS):
        return None
    if any(is_part(file) for file in base.differing_files()):
        return None
    return f"nothing that it is made of changed since {base.name}"


def build() -> int:
    """Build from nothing: of pages that are kept Sphinx would not repeat its warnings."""
    shutil.rmtree(SITE, ignore_errors=True)
    sphinx = [sys.executable, "-m", "sphinx", "--quiet", "--fresh-env"]
    strict = ["--fail-on-warning", "--keep-going", "--nitpicky"]
    places = ["-c", "docs/site", "-d", ".cache/docs", ".", str(SITE)]
    return subprocess.run([*sphinx, *strict, *places], cwd=ROOT, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changed", action="store_true")
    reason = why_not() if parser.parse_args().changed else None
    if reason is not None:
        print(f"docs: not built: {reason}")
        return 0
    begun = time.monotonic()
    failed = build()
    where = "failed" if failed else (SITE / "index.html").relative_to(ROOT)
    print(f"docs: {where}, {time.monotonic() - begun:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main())
