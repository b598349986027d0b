// What is known about a machine: a tree of CPUs, PCIe devices, GPUs and NICs, as NCCL's topology
// XML has it. Every attribute remembers who said it. A value: copyable, comparable, no behaviour.
//
// Graph (graph.h) is made from it; read_machine (machine_xml.h) and detect (detect.h) make it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/topo/machine/attribute.h"

namespace pccl::topo {

/// What NCCL writes where it cannot see an NVLink's other end.
inline constexpr const char* kHiddenTarget = "fffffff:ff:ff.0";
inline constexpr const char* kNvSwitchClass = "0x068000";
inline constexpr const char* kPowerCpuClass = "0x068001";

/// Attributes that PCCL has no use for, kept for those who do: name and value.
using Extras = std::vector<std::pair<std::string, std::string>>;

/// The NVLinks from a GPU to one other end.
struct NvLink {
    Attribute<std::string> target;  // PCI bus id, or kHiddenTarget
    Attribute<std::string> target_class;
    Attribute<int> count;

    friend bool operator==(const NvLink&, const NvLink&) = default;
};

/// The chip-to-chip links from a GPU to its CPU.
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

/// One port of a NIC, or one device of a network plugin.
struct Net {
    Attribute<std::string> name;
    Attribute<int> dev;
    Attribute<int> speed;  // Mb/s
    Attribute<int> port;
    Attribute<std::string> guid;  // of the card, as "0x..."
    Attribute<int> gdr;           // 1: reads and writes GPU memory
    Extras extras;
    bool usable = true;  // false: named by a warning, and left out of plans

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
    Attribute<std::string> link_speed;  // "16.0 GT/s PCIe", for each lane
    Attribute<int> link_width;          // lanes
    std::vector<Gpu> gpus;              // several where ranks share one
    std::vector<Nic> nics;
    std::vector<PciDevice> children;
    std::vector<std::string> peers;  // bus ids of switches joined to this one
    Extras extras;

    friend bool operator==(const PciDevice&, const PciDevice&) = default;
};

/// A NUMA node.
struct Cpu {
    Attribute<int> numa;              // -1: unknown
    Attribute<std::string> affinity;  // cores, as a mask: "0000ffff,ffffffff"
    Attribute<std::string> arch;      // x86_64, arm64, ppc64
    Attribute<std::string> vendor;    // GenuineIntel, AuthenticAMD, ...
    Attribute<int> family;
    Attribute<int> model;
    Attribute<std::string> host;  // the same for all CPUs of a host, "0x..."
    std::vector<PciDevice> devices;
    std::vector<Nic> nics;  // that have no PCIe device
    Extras extras;

    friend bool operator==(const Cpu&, const Cpu&) = default;
};

struct Machine {
    Attribute<std::string> name;
    std::vector<Cpu> cpus;

    friend bool operator==(const Machine&, const Machine&) = default;
};

/// Calls visit(device) for every PCIe device below, parents first.
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

/// Whether a GPU or a port of a NIC is here or below.
[[nodiscard]] PCCL_API bool leads_somewhere(const PciDevice& device);
/// "0x03....": a display or compute device.
[[nodiscard]] PCCL_API bool is_gpu_class(const PciDevice& device);
/// "0x02....": a network device.
[[nodiscard]] PCCL_API bool is_nic_class(const PciDevice& device);

}  // namespace pccl::topo
