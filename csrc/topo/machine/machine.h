// SPDX-License-Identifier: Apache-2.0

// Machine model: a tree of CPUs, PCIe devices, GPUs and NICs, as in NCCL's topology XML. Every
// attribute stores its source. Value type: copyable and comparable, without behaviour.
//
// Graph (graph.h) is made from it; parse_machine_xml (machine_xml.h), parse_hwloc_xml (hwloc_xml.h)
// and observe (live.h) make it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/topo/machine/attribute.h"

namespace pccl::topo {

/// NCCL's target of an NVLink whose other end is not visible.
inline constexpr const char* kHiddenTarget = "fffffff:ff:ff.0";
inline constexpr const char* kNvSwitchClass = "0x068000";
inline constexpr const char* kPowerCpuClass = "0x068001";

/// Attributes that PCCL does not use, kept for other readers: name and value.
using Extras = std::vector<std::pair<std::string, std::string>>;

/// NVLinks from a GPU to one other end.
struct NvLink {
    Attribute<std::string> target;  // PCI bus id, or kHiddenTarget
    Attribute<std::string> target_class;
    Attribute<int> count;

    friend bool operator==(const NvLink&, const NvLink&) = default;
};

/// Chip-to-chip links from a GPU to its CPU.
struct C2c {
    Attribute<int> bandwidth;  // MB/s of each link
    Attribute<int> count;

    friend bool operator==(const C2c&, const C2c&) = default;
};

struct Gpu {
    Attribute<int> dev;   // index in NVML
    Attribute<int> sm;    // 10 x compute capability
    Attribute<int> rank;  // of the process that uses it
    Attribute<int> gdr;   // 1: NICs may read and write its memory
    std::vector<NvLink> nvlinks;
    std::optional<C2c> c2c;
    Extras extras;

    friend bool operator==(const Gpu&, const Gpu&) = default;
};

/// Port of a NIC, or device of a network plugin.
struct Net {
    Attribute<std::string> name;
    Attribute<int> dev;
    Attribute<int> speed;  // Mb/s
    Attribute<int> port;
    Attribute<std::string> guid;  // of the card, as "0x..."
    Attribute<int> gdr;           // 1: reads and writes GPU memory
    Extras extras;
    bool usable = true;  // false: left out of plans, with a warning

    friend bool operator==(const Net&, const Net&) = default;
};

struct Nic {
    std::vector<Net> nets;

    friend bool operator==(const Nic&, const Nic&) = default;
};

struct PciDevice {
    Attribute<std::string> bus_id;      // "0000:0d:00.0", lower case
    Attribute<std::string> class_code;  // "0x030200"
    Attribute<std::string> vendor;      // "0x10de"
    Attribute<std::string> device;
    Attribute<std::string> subsystem_vendor;
    Attribute<std::string> subsystem_device;
    Attribute<std::string> link_speed;  // "16.0 GT/s PCIe", per lane
    Attribute<int> link_width;          // lanes
    std::vector<Gpu> gpus;              // several if ranks share one
    std::vector<Nic> nics;
    std::vector<PciDevice> children;
    std::vector<std::string> peers;  // bus ids of switches joined to this one
    Extras extras;

    friend bool operator==(const PciDevice&, const PciDevice&) = default;
};

/// NUMA node.
struct Cpu {
    Attribute<int> numa;              // -1: unknown
    Attribute<std::string> affinity;  // cores, as a mask: "0000ffff,ffffffff"
    Attribute<std::string> arch;      // x86_64, arm64, ppc64
    Attribute<std::string> vendor;    // GenuineIntel, AuthenticAMD, ...
    Attribute<int> family;
    Attribute<int> model;
    Attribute<std::string> host;  // equal for all CPUs of a host, "0x..."
    std::vector<PciDevice> devices;
    std::vector<Nic> nics;  // without a PCIe device
    Extras extras;

    friend bool operator==(const Cpu&, const Cpu&) = default;
};

struct Machine {
    Attribute<std::string> name;
    std::vector<Cpu> cpus;

    friend bool operator==(const Machine&, const Machine&) = default;
};

/// Calls visit(device) for every PCIe device in `devices` and below, parents first.
template <typename Visit>
void visit_devices(std::vector<PciDevice>& devices, const Visit& visit) {
    for (PciDevice& device : devices) {
        visit(device);
        visit_devices(device.children, visit);
    }
}

/// Calls visit(cpu, device) for every PCIe device, in the order of the tree.
template <typename Visit>
void visit_devices(Machine& machine, const Visit& visit) {
    for (Cpu& cpu : machine.cpus)
        visit_devices(cpu.devices, [&](PciDevice& device) { visit(cpu, device); });
}

/// Returns whether the device or a device below it has a GPU or a port of a NIC.
[[nodiscard]] PCCL_API bool leads_somewhere(const PciDevice& device);
/// Returns true for "0x03....": a display or compute device.
[[nodiscard]] PCCL_API bool is_gpu_class(const PciDevice& device);
/// Returns true for "0x02....": a network device.
[[nodiscard]] PCCL_API bool is_nic_class(const PciDevice& device);

}  // namespace pccl::topo
