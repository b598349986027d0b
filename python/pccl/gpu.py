# SPDX-License-Identifier: Apache-2.0
"""Collectives of GPUs without torch: groups, memory and plans."""

from pccl._core import DeviceGroup, DevicePlan, GpuMemory, GpuWorkspace, device_plan

__all__ = ["DeviceGroup", "DevicePlan", "GpuMemory", "GpuWorkspace", "device_plan"]


def __dir__() -> list[str]:
    return sorted(__all__)
