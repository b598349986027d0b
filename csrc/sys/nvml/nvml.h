// What NVIDIA's management library says about GPUs: NVLinks, links to the CPU's chip, the fabric
// that NVSwitches form, who may reach whose memory, compute capability, the PCIe link that an idle
// GPU hides. The library is opened at run time; machines without it have no GPUs to ask about.
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

/// The links between the chips of a GPU and its CPU that are up.
struct NvmlC2c {
    int count = 0;
    int megabytes = 0;  // a second, of each
};

/// The NVSwitches that a GPU is attached to, of one host or of many.
struct NvmlFabric {
    enum class State { kNone, kStarting, kReady };
    State state = State::kNone;  // kNone: the GPU has none, or NVML does not tell
    int error = 0;               // of a fabric that is ready: whether attaching failed
    std::string cluster{};       // 32 hexadecimal digits; empty within one host
    unsigned clique = 0;         // GPUs of one cluster and clique reach each other
};

struct NvmlGpu {
    int index = 0;
    std::string bus_id;           // "0000:0d:00.0"
    int sm = 0;                   // 10 x compute capability; 0: unknown
    int max_link_generation = 0;  // of PCIe; 0: unknown
    int max_link_width = 0;
    std::vector<NvmlLink> links{};  // that are up
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

/// kUnavailable where the library is missing, or finds no driver.
[[nodiscard]] PCCL_API Result<std::unique_ptr<Nvml>> open_nvml(const char* library = kNvmlLibrary);

}  // namespace pccl::sys
