// SPDX-License-Identifier: Apache-2.0

// A libnvidia-ml.so.1 of two GPUs: the first has NVLinks to an NVSwitch and to the second, links to
// its CPU's chip, and a fabric; the second may not read the first's memory.
//
// Layouts and numbers are those of NVML's reference manual, written down apart from
// csrc/sys/nvml.
#include <cstdint>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kNotSupported = 3;
constexpr int kInvalid = 2;

struct Pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
};

struct Field {
    unsigned id, scope;
    long long timestamp, latency;
    int type, result;
    unsigned long long value;
};

struct Fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
};
static_assert(sizeof(Fabric) == 36);

char gpus[2];

bool is_first(const void* gpu) { return gpu == &gpus[0]; }

Pci pci(unsigned bus) {
    Pci info{};
    info.domain = 0x10000;  // hidden, unless there is one
    if (bus != 0) info.domain = 0;
    info.bus = bus;
    return info;
}

}  // namespace

EXPORT int nvmlInit_v2() { return 0; }
EXPORT int nvmlShutdown() { return 0; }
EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = 2;
    return 0;
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
    if (index > 1) return kInvalid;
    *gpu = &gpus[index];
    return 0;
}
EXPORT int nvmlDeviceGetPciInfo_v3(void* gpu, void* info) {
    const Pci own = pci(is_first(gpu) ? 0x1a : 0x2b);
    std::memcpy(info, &own, sizeof own);
    return 0;
}
EXPORT int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
    *major = 9;
    *minor = 0;
    return 0;
}
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
    *generation = 5;
    return 0;
}
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* width) {
    *width = 16;
    return 0;
}
EXPORT int nvmlDeviceGetNvLinkState(void* gpu, unsigned link, unsigned* is_up) {
    if (link > 3) return kInvalid;
    *is_up = is_first(gpu) && link != 2 ? 1 : 0;
    return 0;
}
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned link, void* info) {
    const Pci other = pci(link == 0 ? 0x2b : 0);
    std::memcpy(info, &other, sizeof other);
    return 0;
}
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned link, unsigned* type) {
    *type = link == 0 ? 0 : 2;
    return 0;
}
EXPORT int nvmlDeviceGetFieldValues(void* gpu, int count, void* values) {
    auto* fields = static_cast<Field*>(values);
    for (int i = 0; i < count; ++i) {
        fields[i].result = is_first(gpu) ? 0 : kNotSupported;
        if (fields[i].id == 170) fields[i].value = 3;                             // links
        if (fields[i].id == 171) fields[i].value = fields[i].scope == 1 ? 0 : 1;  // up
        if (fields[i].id == 172) fields[i].value = 44712;                         // MB/s
    }
    return 0;
}
EXPORT int nvmlDeviceGetGpuFabricInfoV(void* gpu, void* info) {
    auto* fabric = static_cast<Fabric*>(info);
    if (fabric->version != (sizeof(Fabric) | 2U << 24U)) return kInvalid;
    if (!is_first(gpu)) return kNotSupported;
    fabric->cluster[0] = 0xab;
    fabric->cluster[15] = 0x01;
    fabric->clique = 7;
    fabric->state = 3;
    return 0;
}
EXPORT int nvmlDeviceGetP2PStatus(void* from, void*, unsigned what, int* status) {
    *status = is_first(from) || what != 0 ? 0 : 4;
    return 0;
}
