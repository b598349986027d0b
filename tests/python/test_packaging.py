# SPDX-License-Identifier: Apache-2.0
"""What a user meets first: imports, the command, the wheel, and errors when torch is not right."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

REPOSITORY = Path(__file__).resolve().parents[2]
DISTRIBUTION = "pccl-collectives"


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )


def python(code: str, **environment: str) -> str:
    done = run(sys.executable, "-c", code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("imports", ["pccl, torch", "torch, pccl", "pccl"])
def test_import_works_in_any_order(imports: str) -> None:
    assert (
        python(f"import {imports}; print(pccl.__version__)") == distribution(DISTRIBUTION).version
    )


def test_import_of_the_core_leaves_torch_alone() -> None:
    loaded = python("import sys, pccl, pccl._core; print('torch' in sys.modules)")
    assert loaded == "False"


@pytest.mark.parametrize("group", ["torch.backends", "torch.distributed.backends"])
def test_torch_finds_the_backend_by_entry_point(group: str) -> None:
    entries = distribution(DISTRIBUTION).entry_points.select(group=group, name="pccl")
    assert [entry.value for entry in entries] == ["pccl._autoload:register"]


def test_torch_has_the_backend_without_an_import_of_pccl() -> None:
    code = "import torch.distributed as dist; print('pccl' in dist.Backend.backend_list)"
    assert python(code) == "True"


def test_torch_imports_even_when_the_extension_cannot_load() -> None:
    # An exception in an autoloaded backend would break `import torch` for everyone.
    code = "import sys; sys.modules['pccl._torch'] = None; import torch; print(torch.__version__)"
    assert python(code)


def test_another_release_of_torch_is_refused_in_words() -> None:
    code = (
        "import torch; from pccl.torch import compatibility\n"
        "torch.__version__ = '2.10.1+cpu'\n"
        "try: compatibility.require_matching_torch()\n"
        "except ImportError as error: print(error)"
    )
    message = python(code)
    assert "but torch 2.10 is installed" in message
    assert "--no-build-isolation" in message


def test_info_names_the_modules_of_this_build() -> None:
    done = run(sys.executable, "-m", "pccl", "info")
    assert done.returncode == 0, done.stderr
    assert "_core, _torch" in done.stdout


def test_libpccl_exports_only_its_own_names() -> None:
    library = Path(python("import pccl._core as core; print(core.__file__)")).parent / "libpccl.so"
    done = run("nm", "--dynamic", "--demangle", "--defined-only", library)
    names = [line.split(maxsplit=2)[2] for line in done.stdout.splitlines()]
    assert names
    assert [name for name in names if "pccl::" not in name] == []


def test_libpccl_needs_no_torch() -> None:
    library = Path(python("import pccl._core as core; print(core.__file__)")).parent / "libpccl.so"
    needed = run("readelf", "--dynamic", library).stdout
    assert "libstdc++" in needed
    assert "torch" not in needed
    assert "libc10" not in needed


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    stems = {name.split("/", 1)[1].split(".")[0] for name in names if name.startswith("pccl/")}
    assert {"__init__", "_core", "_torch", "_build_info", "libpccl", "py"} <= stems
    assert {"topology/machines/dgx1v", "bench/__init__", "cli/main"} <= stems
    assert {name.split("/")[0].split("-")[0] for name in names} == {"pccl", "pccl_collectives"}
    assert [name for name in names if name.endswith((".a", ".cc", ".h"))] == []


@pytest.mark.slow
def test_installed_wheel_runs_a_collective(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = (sys.executable, "-m", "pip", "install", "--no-deps", "--target", site, wheel)
    assert run(*pip).returncode == 0
    code = (
        "import torch, torch.distributed as dist\n"
        f"dist.init_process_group('pccl', init_method='file://{tmp_path}/store', rank=0,"
        " world_size=1)\n"
        "x = torch.arange(3.0); dist.all_reduce(x); print(x.tolist())\n"
        "import pccl; print(pccl.__file__); dist.destroy_process_group()"
    )
    output = python(code, PYTHONPATH=str(site)).splitlines()
    assert output[0] == "[0.0, 1.0, 2.0]"
    assert Path(output[1]).is_relative_to(site)


@pytest.mark.slow
def test_a_build_by_cmake_lists_all_missing_packages_at_once(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    bare = tmp_path / "venv" / "bin" / "python"
    switches = [f"-DPython_EXECUTABLE={bare}", "-DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON"]
    done = run("cmake", "-S", REPOSITORY, "-B", tmp_path / "build", *switches)
    assert done.returncode != 0
    (printed,) = re.findall(r"pccl cannot be built here; missing are:\n(?:   .+\n)+", done.stderr)
    assert "torch, which must be installed first: pip install torch==" in printed
    assert "openssl/evp.h: apt-get install libssl-dev, or set PCCL_DEPS_DIR" in printed


@pytest.mark.slow
def test_a_build_by_pip_lists_all_missing_packages_at_once(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    bare = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", bare, "install"]
    done = run(*pip, REPOSITORY, "--no-build-isolation", "--no-deps", "--no-index")
    assert done.returncode != 0
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed
    assert f"pccl cannot be built with {bare}; missing are:" in printed
    assert "  scikit-build-core: pip install scikit-build-core" in printed
    assert "  torch: pip install torch==" in printed
    assert "then: pip install . --no-build-isolation" in printed


@pytest.fixture
def build_backend(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "cmake" / "build_backend"))
    return importlib.import_module("pccl_build")


def test_the_list_of_missing_packages_includes_headers(
    build_backend: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "include" / "fmt").mkdir(parents=True)
    (tmp_path / "include" / "fmt" / "format.h").touch()
    monkeypatch.setattr(build_backend, "PREFIXES", (str(tmp_path),))
    monkeypatch.setattr(build_backend.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(build_backend.sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(SystemExit) as stop:
        build_backend.require_all({})
    lines = str(stop.value).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:-1]] == [
        "scikit-build-core",
        "torch",
        "spdlog/spdlog.h",
        "nlohmann/json.hpp",
        "pugixml.hpp",
        "openssl/evp.h",
    ]
    assert lines[-2].strip() == "openssl/evp.h: apt-get install libssl-dev"


@pytest.mark.parametrize(
    ("settings", "needed"),
    [({}, ["torch"]), ({"cmake.define.PCCL_WITH_TORCH": "OFF"}, ["pybind11"])],
)
def test_torch_is_needed_unless_it_is_left_out(
    build_backend: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    needed: list[str],
) -> None:
    there = {"scikit_build_core", "cmake"}
    monkeypatch.setattr(
        build_backend.importlib.util, "find_spec", lambda name: name if name in there else None
    )
    monkeypatch.setattr(build_backend, "_is_installed", lambda _: False)
    assert [line.split(":")[0] for line in build_backend.missing(settings)] == needed
    requested = build_backend.get_requires_for_build_wheel(settings)
    assert [each.split(">")[0] for each in requested][1:] == [
        name for name in needed if name != "torch"
    ]


def test_torch_that_pip_hides_is_not_reported_as_missing(
    build_backend: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where pip isolates the build: it has brought scikit-build-core, for this build alone."""
    (tmp_path / "torch").mkdir()
    monkeypatch.setattr(build_backend.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(
        build_backend.importlib.util, "find_spec", lambda name: None if name == "torch" else name
    )
    hidden, builder = build_backend.missing({})
    assert hidden.startswith("torch, which is installed, but hidden: pip isolates builds")
    assert builder == "scikit-build-core: pip install scikit-build-core"
    (tmp_path / "scikit_build_core").mkdir()
    assert build_backend.missing({}) == [hidden]
    assert build_backend.message([hidden]).endswith("pip install . --no-build-isolation")


def test_torch_of_a_build_without_it_is_refused_in_words() -> None:
    code = (
        "from pccl import _build_info\n"
        "from pccl.torch import compatibility\n"
        "_build_info.TORCH_VERSION = ''\n"
        "try: compatibility.require_matching_torch()\n"
        "except ImportError as error: print(error)"
    )
    message = python(code)
    assert "built without torch, for numpy alone" in message
    assert len(message.splitlines()) == 1


@pytest.mark.slow
def test_libraries_of_the_wheel_can_be_shipped(wheel: Path) -> None:
    done = run(sys.executable, REPOSITORY / "tools" / "check_wheel.py", wheel)
    # A developer's build, as this is for the sake of the compiler's cache, names files for
    # debuggers; tools/wheel.sh, which makes the wheels that are shipped, lets no name pass.
    faults = [line for line in done.stdout.splitlines() if ": names " not in line]
    assert faults == []


C_WITH_FAULTS = """
#include <stdio.h>
const char *pccl_place = "/home/somebody/clone/x.c";
int other_name(void) { return puts(pccl_place); }
"""


def test_what_cannot_be_shipped_is_found(tmp_path: Path) -> None:
    source, library = tmp_path / "x.c", tmp_path / "libpccl.so"
    source.write_text(C_WITH_FAULTS)
    made = run("cc", "-shared", "-fPIC", "-Wl,-rpath,/opt/elsewhere", source, "-o", library)
    assert made.returncode == 0, made.stderr
    archive = tmp_path / "pccl_collectives-1-cp311-cp311-manylinux_2_1_x86_64.whl"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(library, "pccl/libnccl-net-pccl.so")
    done = run(sys.executable, REPOSITORY / "tools" / "check_wheel.py", archive)
    assert done.returncode == 1
    for fault in (
        "RPATH /opt/elsewhere",
        "names /home/somebody/clone/x.c",
        "exports other_name",
        "lacks pccl/libpccl.so",
        "pccl/libnccl-net-pccl.so: lacks ncclNetPlugin_v6",
    ):
        assert fault in done.stdout
    assert "pccl_place" not in done.stdout
    assert "needs glibc 2." in done.stdout


def test_no_message_names_the_distribution_of_somebody_else() -> None:
    files = [REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md")]
    files += [*REPOSITORY.glob("python/**/*.py*"), *REPOSITORY.glob("cmake/**/*.*")]
    files += [*REPOSITORY.glob("csrc/**/*.cc"), *REPOSITORY.glob("tools/*.*")]
    pattern = re.compile(r"pip install (?:-\S+ )*pccl(?![-\w])")
    texts = [file for file in files if file.is_file() and file.suffix != ".pyc"]
    assert [str(file) for file in texts if pattern.search(file.read_text())] == []
