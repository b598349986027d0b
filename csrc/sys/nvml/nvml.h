// What NVIDIA's management library says about GPUs: NVLinks, compute capability, the PCIe link that
// an idle GPU hides. The library is opened at run time; machines without it have no GPUs to ask
// about.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "csrc/base/status.h"

namespace pccl::sys {

enum class NvLinkEnd { kGpu, kSwitch, kCpu, kUnknown };

struct NvmlLink {
    std::string target;  // PCI bus id, lower case; empty where it is hidden
    NvLinkEnd end = NvLinkEnd::kUnknown;
};

struct NvmlGpu {
    int index = 0;
    std::string bus_id;           // "0000:0d:00.0"
    int sm = 0;                   // 10 x compute capability; 0: unknown
    int max_link_generation = 0;  // of PCIe; 0: unknown
    int max_link_width = 0;
    std::vector<NvmlLink> links;  // that are up
};

class Nvml {
   public:
    virtual ~Nvml() = default;
    [[nodiscard]] virtual Result<std::vector<NvmlGpu>> gpus() const = 0;
};

/// kUnavailable where the library is missing, or finds no driver.
[[nodiscard]] PCCL_API Result<std::unique_ptr<Nvml>> open_nvml();

}  // namespace pccl::sys
