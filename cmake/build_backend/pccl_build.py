# SPDX-License-Identifier: Apache-2.0
"""What pip calls to build pccl: scikit-build-core, behind a look at what is missing.

It is a backend of its own so that the look comes first, and one message names all that is missing,
scikit-build-core included.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

CMAKE = Path(__file__).resolve().parents[1]
TORCH = "2.13.0"
BUILDERS = ("scikit-build-core>=0.10",)
PREFIXES = ("/usr", "/usr/local", sys.prefix)  # of headers
SWITCH = "cmake.define.PCCL_WITH_TORCH"

Settings = dict[str, Any] | None


def is_with_torch(settings: Settings) -> bool:
    """Tell whether pccl._torch is to be built."""
    wanted = str((settings or {}).get(SWITCH, "ON")).upper()
    return wanted not in ("OFF", "0", "FALSE", "NO")


def missing(settings: Settings) -> list[str]:
    """Return a line for each thing that the build needs and that is not here."""
    modules = {"scikit_build_core": "scikit-build-core: pip install scikit-build-core"}
    if is_with_torch(settings):
        modules["torch"] = f"torch: pip install torch=={TORCH}; or -C{SWITCH}=OFF, for numpy alone"
    else:
        modules["pybind11"] = "pybind11: pip install pybind11"
    lines = []
    is_here = _can_be_imported
    if "torch" in modules and not is_here("torch") and _is_installed("torch"):
        # What pip has brought for this build alone is not there for the one that works.
        is_here = _is_installed
        lines.append(
            "torch, which is installed, but hidden: pip isolates builds unless told not to"
        )
    lines += [line for name, line in modules.items() if not is_here(name)]
    if not any(map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))):
        lines.append("a C++ compiler: apt-get install g++")
    if shutil.which("cmake") is None and importlib.util.find_spec("cmake") is None:
        lines.append("cmake: apt-get install cmake")
    return lines


def _can_be_imported(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _is_installed(module: str) -> bool:
    """Tell whether the environment has it, though pip may hide it from this build."""
    return any(Path(sysconfig.get_path(name), module).exists() for name in ("purelib", "platlib"))


def missing_headers(settings: Settings) -> list[str]:
    """Return a line for each header that is in none of the usual places.

    CMake looks in more of them, and decides; this is for who has to install something anyway.
    """
    given = str((settings or {}).get("cmake.define.PCCL_DEPS_DIR", ""))
    variables = [os.environ.get(name, "") for name in ("CMAKE_PREFIX_PATH", "CONDA_PREFIX")]
    prefixes = [given, *variables, *PREFIXES]
    places = [Path(prefix, "include") for prefix in prefixes if prefix]
    listed = (CMAKE / "headers.txt").read_text().splitlines()
    words = [line.split() for line in listed if line and not line.startswith("#")]
    return [
        f"{header}: apt-get install {package}"
        for header, package in words
        if not any((place / header).exists() for place in places)
    ]


def require_all(settings: Settings) -> None:
    """End with one message where something is missing."""
    lines = missing(settings)
    if lines:
        sys.exit(message([*lines, *missing_headers(settings)]))


def message(lines: Iterable[str]) -> str:
    """Say what is missing, and what to do then."""
    listed = "\n".join(f"  {line}" for line in lines)
    return (
        f"pccl cannot be built with {sys.executable}; missing are:\n{listed}\n"
        "then: pip install . --no-build-isolation"
    )


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return what pip installs where it isolates the build: never torch, which is the user's."""
    return [*BUILDERS, *(() if is_with_torch(config_settings) else ("pybind11>=2.13",))]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """Return the same."""
    return get_requires_for_build_wheel(config_settings)


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """Return what a source distribution needs."""
    return [*BUILDERS]


def prepare_metadata_for_build_wheel(folder: str, config_settings: Settings = None) -> str:
    """Write the metadata alone."""
    require_all(config_settings)
    return _backend().prepare_metadata_for_build_wheel(folder, config_settings)


def prepare_metadata_for_build_editable(folder: str, config_settings: Settings = None) -> str:
    """Write the metadata alone."""
    require_all(config_settings)
    return _backend().prepare_metadata_for_build_editable(folder, config_settings)


def build_wheel(
    folder: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Build, and return the name of the file."""
    require_all(config_settings)
    return _backend().build_wheel(folder, config_settings, metadata_directory)


def build_editable(
    folder: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Build, and return the name of the file."""
    require_all(config_settings)
    return _backend().build_editable(folder, config_settings, metadata_directory)


def build_sdist(folder: str, config_settings: Settings = None) -> str:
    """Pack the sources, and return the name of the file."""
    return _backend().build_sdist(folder, config_settings)


def _backend() -> Any:
    return importlib.import_module("scikit_build_core.build")
