// What this machine's kernel and drivers say, as a Machine.
#pragma once

#include <vector>

#include "csrc/sys/nvml/nvml.h"
#include "csrc/sys/sysfs/sysfs.h"
#include "csrc/topo/machine/machine.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {

/// GPUs of NVIDIA and ports of NICs, below their PCIe switches and NUMA nodes. Where there are RDMA
/// ports, Ethernet without RDMA is left out, as NCCL does. `gpus` are what NVML says; null where
/// there is no NVML. GPUs that NVML hides are left out, with a warning.
[[nodiscard]] Machine observe(const sys::Sysfs& sysfs, const std::vector<sys::NvmlGpu>* gpus,
                              Warnings& warnings);

/// Whether any two of the GPUs may access each other's memory; true where there are no two.
[[nodiscard]] bool has_peer_access(const std::vector<sys::NvmlGpu>& gpus);

/// What around the devices costs bandwidth, or stops programs: IOMMU, ACS, a small /dev/shm.
void check_surroundings(const sys::Sysfs& sysfs, const Machine& machine, Warnings& warnings);

/// Fills in what `machine` does not say about NUMA nodes, and about devices that `live` knows by
/// bus id.
void enrich(Machine& machine, const Machine& live);

}  // namespace pccl::topo
