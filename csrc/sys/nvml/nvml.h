// SPDX-License-Identifier: Apache-2.0

// GPU properties from NVIDIA's management library: NVLinks, chip-to-chip links to the CPU, the
// NVSwitch fabric, peer access, compute capability, and the full PCIe link, which idle GPUs reduce.
// The library is opened at run time; a machine without it has no GPUs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <pccl/status.h>

namespace pccl::sys {

enum class NvLinkEnd { kGpu, kSwitch, kCpu, kUnknown };

struct NvmlLink {
    std::string target;  // PCI bus id, lower case; empty where it is hidden
    NvLinkEnd end = NvLinkEnd::kUnknown;
};

/// Active links between the chips of a GPU and its CPU.
struct NvmlC2c {
    int count = 0;
    int megabytes = 0;  // a second, of each link
};

/// NVSwitches that a GPU is attached to, of one host or of many.
struct NvmlFabric {
    enum class FabricState { kNone, kStarting, kReady };
    FabricState state = FabricState::kNone;  // kNone: the GPU has none, or NVML does not report it
    int error = 0;                           // of a ready fabric: not 0 where attaching failed
    std::string cluster{};                   // 32 hexadecimal digits; empty within one host
    unsigned clique = 0;                     // GPUs of one cluster and clique reach each other
};

struct NvmlGpu {
    int index = 0;
    std::string bus_id;           // "0000:0d:00.0"
    int sm = 0;                   // 10 x compute capability; 0: unknown
    int max_link_generation = 0;  // of PCIe; 0: unknown
    int max_link_width = 0;
    std::vector<NvmlLink> links{};  // active links
    NvmlC2c c2c{};
    NvmlFabric fabric{};
    std::vector<int> cannot_read{};  // indices of GPUs whose memory it may not read
};

class Nvml {
   public:
    virtual ~Nvml() = default;
    [[nodiscard]] virtual Result<std::vector<NvmlGpu>> gpus() const = 0;
};

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

/// Opens NVML. kUnavailable where the library is missing or finds no driver.
[[nodiscard]] PCCL_API Result<std::unique_ptr<Nvml>> open_nvml(const char* library = kNvmlLibrary);

}  // namespace pccl::sys
