# SPDX-License-Identifier: Apache-2.0
"""Execution plans as the sources of MSCCL++ write them, generated from a folder of those sources.

Its language is plain Python, and needs neither a GPU nor the compiled module: its package is loaded
without what its ``__init__`` imports. Each program is run in a process of its own, since the
language numbers barriers for as long as the process lives.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path("python/mscclpp")
TESTS = PACKAGE / "language/tests"
EXECUTOR_TESTS = Path("test/executor-tests")

# By node and in all, for the algorithms that MSCCL++ brings for several hosts.
_SHAPES = [(2, 4), (2, 8), (4, 8), (8, 16), (8, 32)]
_SECONDS = 120

_PRELUDE = """
import sys, types
package = types.ModuleType("mscclpp")
package.__path__ = [sys.argv.pop(1)]
sys.modules["mscclpp"] = package
"""
_OF_SCRIPT = (
    _PRELUDE
    + """
import runpy
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
)
_OF_FUNCTION = (
    _PRELUDE
    + """
import json
from mscclpp import default_algos
from mscclpp.language import collectives
from mscclpp.language.utils import AlgoSpec
function, collective, ranks, per_node, in_place, options = json.loads(sys.argv[1])
spec = AlgoSpec(
    name=function, collective=getattr(collectives, collective)(ranks, 1, in_place),
    nranks_per_node=per_node, world_size=ranks, in_place=in_place, instances=1, protocol="LL",
    auto_sync=False, reuse_resources=True, use_double_scratch_buffer=True,
)
print(getattr(default_algos, function)(spec, **options).to_json())
"""
)


@dataclass(frozen=True)
class Source:
    """What writes a plan: a program with arguments, or a file that is one already."""

    name: str
    origin: str  # "language/tests", "default_algos", "executor-tests" or "shipped"
    arguments: tuple[str, ...] = ()
    shipped: Path | None = None


@dataclass(frozen=True)
class Generated:
    """A plan in a file; or why there is none."""

    source: Source
    file: Path | None = None
    error: str = ""


def _script(root: Path, file: Path, origin: str, **options: object) -> Source:
    chosen = [f"--{key}={value}" for key, value in options.items()]
    number = "".join(f"-{value}" for value in options.values())
    text = (root / file).read_text()
    named = ["--name=plan"] if '"--name"' in text else []
    arguments = ("-c", _OF_SCRIPT, str(root / PACKAGE), str(root / file), *named, *chosen)
    return Source(f"{file.stem}{number}", origin, arguments)


def _scripts(root: Path, folder: Path, origin: str) -> list[Source]:
    """Of each number of GPUs that a program takes, 2, 4 and 8; of several nodes, 2."""
    sources = []
    for path in sorted((root / folder).rglob("*.py")):
        file = path.relative_to(root)
        text = path.read_text()
        if '"--tbg_size"' in text:
            # The program takes each of the two for the other.
            for per_node, size in itertools.product((2, 4, 8), (2, 4)):
                options = {"num_gpus": 2 * per_node, "gpus_per_node": size, "tbg_size": per_node}
                sources.append(_script(root, file, origin, **options))
            continue
        option = next(
            (each for each in ("num_gpus", "gpus_per_node") if f'"--{each}"' in text), None
        )
        more = {"instances": 1, "split_mask": "0x1"} if '"--split_mask"' in text else {}
        more |= {"nnodes": 2} if '"--nnodes"' in text else {}
        more |= {"instances": 1} if '"--instances"' in text else {}
        for count in (2, 4, 8) if option else (0,):
            options = ({option: count} if option else {}) | more
            sources.append(_script(root, file, origin, **options))
    return sources


def _default(
    root: Path, collective: str, ranks: int, per_node: int, *, in_place: bool, group: int = 0
) -> Source:
    function = f"{collective.lower()}_multi_nodes"
    options = {"thread_block_group_size": group} if group else {}
    requested = json.dumps([function, collective, ranks, per_node, in_place, options])
    number = f"-{ranks}-{per_node}" + (f"-group{group}" if group else f"-{'io'[not in_place]}")
    arguments = ("-c", _OF_FUNCTION, str(root / PACKAGE), requested)
    return Source(f"{function}{number}", "default_algos", arguments)


def _defaults(root: Path) -> list[Source]:
    sources = []
    for per_node, ranks in _SHAPES:
        for in_place in (True, False):
            sources.append(_default(root, "AllGather", ranks, per_node, in_place=in_place))
        for group in (1, 4):
            for collective in ("AllReduce", "ReduceScatter"):
                sources.append(
                    _default(root, collective, ranks, per_node, in_place=True, group=group)
                )
    for group in (1, 4):
        sources.append(_default(root, "ReduceScatter", 8, 8, in_place=True, group=group))
    return sources


def sources_in(root: Path) -> list[Source]:
    """List all that writes plans in the sources of MSCCL++.

    Raises
    ------
    FileNotFoundError
        The folder has no ``python/mscclpp/language``.
    """
    if not (root / TESTS).is_dir():
        raise FileNotFoundError(f"{root / TESTS}: this is no folder of the sources of MSCCL++")
    shipped = [
        Source(f"{file.stem} ({file.parent.name})", "shipped", shipped=file)
        for folder in ("test/execution-files", EXECUTOR_TESTS / "execution-plans")
        for file in sorted((root / folder).glob("*.json"))
    ]
    return [
        *_scripts(root, TESTS, "language/tests"),
        *_defaults(root),
        *_scripts(root, EXECUTOR_TESTS / "algos", "executor-tests"),
        *shipped,
    ]


def _generate(source: Source, file: Path) -> Generated:
    if source.shipped is not None:
        return Generated(source, source.shipped)
    done = subprocess.run(
        [sys.executable, *source.arguments],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    if done.returncode != 0:
        return Generated(source, error=(done.stderr.strip().splitlines() or ["no output"])[-1])
    # Some programs print other lines before the plan.
    file.write_text(done.stdout[done.stdout.index("{") :])
    return Generated(source, file)


def generate(root: Path, folder: Path, *, workers: int = 2) -> list[Generated]:
    """Write all plans of the sources in ``root`` into ``folder``."""
    sources = sources_in(root)
    with ThreadPoolExecutor(workers) as pool:
        files = [folder / f"{number:03}-{each.name}.json" for number, each in enumerate(sources)]
        return list(pool.map(_generate, sources, files))


def collective_of(file: Path) -> str:
    """Return what a plan says its collective is."""
    return str(json.loads(file.read_text())["collective"])
