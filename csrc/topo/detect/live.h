// SPDX-License-Identifier: Apache-2.0

// Machine model from the kernel and the drivers of this host.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "csrc/sys/nvml/nvml.h"
#include "csrc/sys/sysfs/sysfs.h"
#include "csrc/topo/machine/machine.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {

/// Probe of an RDMA device by its name: whether its driver registers dma-bufs of GPUs.
using DmabufProbe = std::function<bool(const std::string& device)>;

/// Returns NVIDIA GPUs and ports of NICs, below their PCIe switches and NUMA nodes. If there are
/// ports of RDMA hardware, Ethernet without RDMA is left out, as in NCCL. An emulated RDMA device
/// (rxe, siw) replaces the interface that it uses. `gpus` is the result of NVML; null without NVML.
/// GPUs that NVML hides are left out, with a warning. A port has access to memory of GPUs
/// (GPUDirect RDMA) where nvidia_peermem is loaded or `takes_dmabuf` finds it; the probe, which may
/// be empty, is called on machines with GPUs only.
[[nodiscard]] Machine observe(const sys::Sysfs& sysfs, const std::vector<sys::NvmlGpu>* gpus,
                              Warnings& warnings, const DmabufProbe& takes_dmabuf = {});

/// Returns whether any two of the GPUs may access each other's memory; true if there are fewer than
/// two.
[[nodiscard]] bool has_peer_access(const std::vector<sys::NvmlGpu>& gpus);

/// Warns of settings around the devices that cost bandwidth or stop programs: IOMMU, ACS, a small
/// /dev/shm.
void check_surroundings(const sys::Sysfs& sysfs, const Machine& machine, Warnings& warnings);

/// Adds to `machine` missing attributes of NUMA nodes, and of devices that `live` has with the same
/// bus id.
void enrich(Machine& machine, const Machine& live);

}  // namespace pccl::topo
