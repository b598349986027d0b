# SPDX-License-Identifier: Apache-2.0
"""GPUs of the host: driver, device files, and the build's kernels."""

from __future__ import annotations

import dataclasses
import re
import typing

from pccl import _build_info, _core
from pccl.diagnostics.doctor.finding import Finding, error, warning

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["Gpus", "check", "read"]


@dataclasses.dataclass(frozen=True)
class Gpus:
    """The GPUs that the driver lists, and those with a device file."""

    driver: str = ""
    listed: int = 0
    files: int = 0
    has_control: bool = True  # /dev/nvidiactl and /dev/nvidia-uvm
    has_kernels: bool = True  # of this build
    path: str = ""  # where kernels of several GPUs meet, and why


def read(root: Root) -> Gpus:
    """Read the state of the driver."""
    version = re.search(
        r"Kernel Module.*?(\d+\.\d[\d.]*)", root.text("/proc/driver/nvidia/version") or ""
    )
    devices = root.names("/dev")
    files = sum(bool(re.fullmatch(r"nvidia\d+", name)) for name in devices)
    return Gpus(
        driver=version[1] if version else "",
        listed=len(root.names("/proc/driver/nvidia/gpus")),
        files=files,
        has_control={"nvidiactl", "nvidia-uvm"} <= set(devices),
        has_kernels=bool(_build_info.CUDA),
        path=_core.gpu_path() if files > 1 else "",
    )


def check(gpus: Gpus) -> Iterator[Finding]:
    """Find GPUs that this process cannot use."""
    if not gpus.driver:
        return
    if gpus.listed and not gpus.files:
        yield error(
            "gpus.devices",
            f"driver {gpus.driver} lists {gpus.listed} GPUs, and /dev has none of them",
            "start the container with --gpus all (nvidia.com/gpu of a pod)",
            listed=gpus.listed,
        )
    elif gpus.files and not gpus.has_control:
        yield error(
            "gpus.control",
            "/dev/nvidiactl or /dev/nvidia-uvm is missing",
            "run `nvidia-modprobe -u -c=0` on the host, and start the container with --gpus all",
        )
    if gpus.files and not gpus.has_kernels:
        yield warning(
            "gpus.kernels",
            f"there are {gpus.files} GPUs, and this build of pccl has no CUDA kernels",
            "install a wheel with CUDA, or build with PCCL_WITH_CUDA=ON",
            gpus=gpus.files,
        )
    if "does not reach" in gpus.path:
        yield warning(
            "gpus.peer_access",
            f"GPUs of this host have no peer access: {gpus.path}",
            "start the container with all GPUs, and turn off ACS of the PCIe bridges and the IOMMU"
            " where `nvidia-smi topo -p2p r` shows no access",
            path=gpus.path,
        )
