// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/nvml/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>

#include "csrc/base/text/text.h"
#include "csrc/sys/library.h"

namespace pccl::sys {
namespace {

// The functions are declared here because the header is not part of every CUDA toolkit. The layouts
// are those of NVML's stable interface (nvmlPciInfo_t of the functions with _v3 and, for NVLinks,
// _v2).
using Device = void*;
constexpr int kSuccess = 0;
constexpr unsigned kMostLinks = 36;

struct PciInfo {
    std::array<char, 16> legacy_bus_id;
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned pci_device_id;
    unsigned pci_subsystem_id;
    std::array<char, 32> bus_id;
};

/// nvmlGpuFabricInfo_v2_t.
struct FabricInfo {
    unsigned version;
    std::array<unsigned char, 16> cluster;
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
};

/// nvmlFieldValue_t.
struct FieldValue {
    unsigned field;
    unsigned scope;
    long long timestamp;
    long long latency;
    int type;
    int result;
    union {
        double as_double;
        unsigned as_unsigned;
        unsigned long long as_long;
    } value;
};

struct NvmlFunctions {
    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    int (*device_count)(unsigned*) = nullptr;
    int (*device_by_index)(unsigned, Device*) = nullptr;
    int (*pci_info)(Device, PciInfo*) = nullptr;
    int (*compute_capability)(Device, int*, int*) = nullptr;
    int (*max_link_generation)(Device, unsigned*) = nullptr;
    int (*max_link_width)(Device, unsigned*) = nullptr;
    int (*link_state)(Device, unsigned, unsigned*) = nullptr;
    int (*link_remote)(Device, unsigned, PciInfo*) = nullptr;
    int (*link_remote_type)(Device, unsigned, unsigned*) = nullptr;  // null in older libraries,
    int (*field_values)(Device, int, FieldValue*) = nullptr;         // like the following members
    int (*fabric_info)(Device, FabricInfo*) = nullptr;
    int (*peer_status)(Device, Device, unsigned, int*) = nullptr;
};

/// Returns the bus id with four digits of domain; NVML's form has eight.
std::string bus_id_of(const PciInfo& info) {
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0", info.domain, info.bus, info.device);
    return text.data();
}

bool is_hidden(const PciInfo& info) { return info.domain > 0xFFFF || info.bus == 0xFF; }

class Library final : public Nvml {
   public:
    Library(void* handle, const NvmlFunctions& functions) : handle_(handle), call_(functions) {}
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    ~Library() override {
        call_.shutdown();
        ::dlclose(handle_);
    }

    [[nodiscard]] Result<std::vector<NvmlGpu>> gpus() const override {
        unsigned count = 0;
        if (const int error = call_.device_count(&count); error != kSuccess)
            return Status::unavailable(concat("NVML cannot count GPUs: error ", error));
        std::vector<NvmlGpu> gpus;
        std::vector<Device> devices;
        for (unsigned index = 0; index < count; ++index) {
            Device device = nullptr;
            PciInfo info{};
            if (call_.device_by_index(index, &device) != kSuccess ||
                call_.pci_info(device, &info) != kSuccess)
                continue;
            gpus.push_back(describe(device, static_cast<int>(index), info));
            devices.push_back(device);
        }
        for (std::size_t from = 0; from < devices.size(); ++from)
            for (std::size_t to = 0; to < devices.size(); ++to)
                if (from != to && !may_read(devices[from], devices[to]))
                    gpus[from].cannot_read.push_back(gpus[to].index);
        return gpus;
    }

   private:
    [[nodiscard]] NvmlGpu describe(Device device, int index, const PciInfo& info) const {
        NvmlGpu gpu{.index = index,
                    .bus_id = bus_id_of(info),
                    .links = links_of(device),
                    .c2c = c2c_of(device),
                    .fabric = fabric_of(device)};
        int major = 0;
        int minor = 0;
        if (call_.compute_capability(device, &major, &minor) == kSuccess)
            gpu.sm = 10 * major + minor;
        unsigned value = 0;
        if (call_.max_link_generation(device, &value) == kSuccess)
            gpu.max_link_generation = static_cast<int>(value);
        if (call_.max_link_width(device, &value) == kSuccess)
            gpu.max_link_width = static_cast<int>(value);
        return gpu;
    }

    [[nodiscard]] std::optional<unsigned> field(Device device, unsigned field,
                                                unsigned scope) const {
        FieldValue value{};
        value.field = field;
        value.scope = scope;
        if (call_.field_values == nullptr || call_.field_values(device, 1, &value) != kSuccess ||
            value.result != kSuccess)
            return std::nullopt;
        return value.value.as_unsigned;
    }

    [[nodiscard]] NvmlC2c c2c_of(Device device) const {
        constexpr unsigned kLinkCount = 170;  // NVML_FI_DEV_C2C_...
        constexpr unsigned kLinkStatus = 171;
        constexpr unsigned kMostBandwidth = 172;
        NvmlC2c c2c;
        const unsigned links = std::min(field(device, kLinkCount, 0).value_or(0), kMostLinks);
        for (unsigned link = 0; link < links; ++link) {
            const auto megabytes = field(device, kMostBandwidth, link);
            if (field(device, kLinkStatus, link).value_or(0) != 1 || !megabytes) continue;
            ++c2c.count;
            c2c.megabytes = static_cast<int>(std::min(*megabytes, 100'000'000U));
        }
        return c2c;
    }

    [[nodiscard]] NvmlFabric fabric_of(Device device) const {
        constexpr unsigned kSecondVersion = 2U << 24U;
        constexpr unsigned char kInProgress = 2;  // NVML_GPU_FABRIC_STATE_...
        constexpr unsigned char kCompleted = 3;
        FabricInfo info{};
        info.version = static_cast<unsigned>(sizeof info) | kSecondVersion;
        if (call_.fabric_info == nullptr || call_.fabric_info(device, &info) != kSuccess) return {};
        NvmlFabric fabric{.clique = info.clique};
        if (info.state == kInProgress) fabric.state = NvmlFabric::FabricState::kStarting;
        if (info.state == kCompleted) {
            fabric.state = NvmlFabric::FabricState::kReady;
            fabric.error = info.status;
        }
        if (std::ranges::any_of(info.cluster, [](unsigned char byte) { return byte != 0; }))
            for (const unsigned char byte : info.cluster) {
                constexpr std::string_view kDigits = "0123456789abcdef";
                fabric.cluster += kDigits[byte >> 4U];
                fabric.cluster += kDigits[byte & 15U];
            }
        return fabric;
    }

    /// Returns whether `device` may read memory of `other`; true where NVML does not report it.
    [[nodiscard]] bool may_read(Device device, Device other) const {
        constexpr unsigned kRead = 0;  // NVML_P2P_CAPS_INDEX_READ
        int status = 0;
        return call_.peer_status == nullptr ||
               call_.peer_status(device, other, kRead, &status) != kSuccess || status == 0;
    }

    [[nodiscard]] std::vector<NvmlLink> links_of(Device device) const {
        std::vector<NvmlLink> links;
        for (unsigned link = 0; link < kMostLinks; ++link) {
            unsigned is_up = 0;
            if (call_.link_state(device, link, &is_up) != kSuccess || is_up == 0) continue;
            NvmlLink found{.target = {}, .end = end_of(device, link)};
            PciInfo remote{};
            if (call_.link_remote(device, link, &remote) == kSuccess && !is_hidden(remote))
                found.target = bus_id_of(remote);
            links.push_back(std::move(found));
        }
        return links;
    }

    [[nodiscard]] NvLinkEnd end_of(Device device, unsigned link) const {
        unsigned type = 255;
        if (call_.link_remote_type == nullptr ||
            call_.link_remote_type(device, link, &type) != kSuccess)
            return NvLinkEnd::kUnknown;
        constexpr std::array<NvLinkEnd, 3> kEnds{NvLinkEnd::kGpu, NvLinkEnd::kCpu,
                                                 NvLinkEnd::kSwitch};
        return type < kEnds.size() ? kEnds[type] : NvLinkEnd::kUnknown;
    }

    void* handle_;
    NvmlFunctions call_;
};

bool find_all(void* handle, NvmlFunctions& functions) {
    find_function(handle, "nvmlDeviceGetNvLinkRemoteDeviceType", functions.link_remote_type);
    find_function(handle, "nvmlDeviceGetFieldValues", functions.field_values);
    find_function(handle, "nvmlDeviceGetGpuFabricInfoV", functions.fabric_info);
    find_function(handle, "nvmlDeviceGetP2PStatus", functions.peer_status);
    return find_function(handle, "nvmlInit_v2", functions.init) &&
           find_function(handle, "nvmlShutdown", functions.shutdown) &&
           find_function(handle, "nvmlDeviceGetCount_v2", functions.device_count) &&
           find_function(handle, "nvmlDeviceGetHandleByIndex_v2", functions.device_by_index) &&
           find_function(handle, "nvmlDeviceGetPciInfo_v3", functions.pci_info) &&
           find_function(handle, "nvmlDeviceGetCudaComputeCapability",
                         functions.compute_capability) &&
           find_function(handle, "nvmlDeviceGetMaxPcieLinkGeneration",
                         functions.max_link_generation) &&
           find_function(handle, "nvmlDeviceGetMaxPcieLinkWidth", functions.max_link_width) &&
           find_function(handle, "nvmlDeviceGetNvLinkState", functions.link_state) &&
           find_function(handle, "nvmlDeviceGetNvLinkRemotePciInfo_v2", functions.link_remote);
}

}  // namespace

Result<std::unique_ptr<Nvml>> open_nvml(const char* library) {
    void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return Status::unavailable(concat(library, " is not installed"));
    NvmlFunctions functions;
    if (!find_all(handle, functions)) {
        ::dlclose(handle);
        return Status::unavailable(concat(library, " is too old: it lacks a function"));
    }
    if (const int error = functions.init(); error != kSuccess) {
        ::dlclose(handle);
        return Status::unavailable(concat("NVML does not start: error ", error));
    }
    return std::unique_ptr<Nvml>(std::make_unique<Library>(handle, functions));
}

}  // namespace pccl::sys
