# SPDX-License-Identifier: Apache-2.0
"""Build a package tree beside freshly built modules: links to python/pccl, plus its metadata.

    link_package.py <repository> <build>/python

With that folder on PYTHONPATH, ``import pccl`` gives the sources as they are, with the modules of
this build, and torch finds the backend through the entry points, as if a wheel were installed.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path


def link_sources(package: Path, tree: Path) -> None:
    """Make ``tree`` hold one link per entry of ``package``, and no link to what is gone."""
    for stale in tree.iterdir():
        if stale.is_symlink():
            stale.unlink()
    for entry in package.iterdir():
        if entry.name != "__pycache__" and entry.suffix != ".so":
            (tree / entry.name).symlink_to(entry)


def write_metadata(project: dict[str, object], version: str, site: Path) -> None:
    """Write the .dist-info that an installer would write: name, version, entry points."""
    name = str(project["name"]).replace("-", "_")
    info = site / f"{name}-{version}.dist-info"
    for stale in set(site.glob("*.dist-info")) - {info}:
        shutil.rmtree(stale)
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
    )
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}  # type: ignore[dict-item]
    lines: list[str] = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))


def main() -> None:
    """Run with the repository and the target folder as arguments."""
    repository, site = map(Path, sys.argv[1:])
    (site / "pccl").mkdir(parents=True, exist_ok=True)
    link_sources(repository / "python" / "pccl", site / "pccl")
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    version_scope: dict[str, str] = {}
    exec((repository / "python" / "pccl" / "_version.py").read_text(), version_scope)
    write_metadata(project, version_scope["__version__"], site)


if __name__ == "__main__":
    main()
