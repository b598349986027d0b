// SPDX-License-Identifier: Apache-2.0

// PCIe devices, NICs and NUMA nodes from the kernel. Reads sysfs and procfs below a root, so that
// tests can emulate machines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <pccl/status.h>

namespace pccl::sys {

struct SysfsPciDevice {
    std::string bus_id;
    std::vector<std::string> above;  // bus ids of the bridges above it, the highest first
    std::string class_code;          // "0x030200"
    std::string vendor;              // "0x10de"
    std::string device;
    std::string subsystem_vendor;
    std::string subsystem_device;
    std::string max_link_speed;  // "32.0 GT/s PCIe"; empty where the device has none
    int max_link_width = 0;      // 0 where the device has none
    int numa = -1;
};

struct SysfsPort {
    std::string name;    // "mlx5_0", "eth0"
    std::string bus_id;  // of its PCIe device
    bool rdma = false;
    int port = 0;
    int megabits = -1;  // -1: unknown
    std::string guid;   // "0x0c42a10300a1b2c3", of RDMA devices
    /// Interface on which the kernel emulates this RDMA device (rxe, siw); empty: it has hardware.
    std::string emulated_on{};
};

struct SysfsCpu {
    std::string arch;    // x86_64, arm64
    std::string vendor;  // as in /proc/cpuinfo
    int family = -1;
    int model = -1;
};

class PCCL_API Sysfs {
   public:
    explicit Sysfs(std::string root = "") : root_(std::move(root)) {}

    /// Returns the devices in the order of their bus ids; empty where there is no PCIe.
    [[nodiscard]] std::vector<SysfsPciDevice> pci_devices() const;
    /// Returns the NUMA node of a device; -1 where that is unknown.
    [[nodiscard]] int numa_of(const std::string& bus_id) const;
    /// Returns ports of NICs that have a PCIe device and are not down, in the order of their names;
    /// RDMA first. An emulated RDMA device has the PCIe device of its interface.
    [[nodiscard]] std::vector<SysfsPort> ports() const;
    /// Returns emulated RDMA devices, and network interfaces, that are up without a PCIe device;
    /// without the loopback and bridges.
    [[nodiscard]] std::vector<SysfsPort> virtual_interfaces() const;
    /// Returns the numbers of the NUMA nodes that have cores.
    [[nodiscard]] std::vector<int> numa_nodes() const;
    /// Returns the mask of a node's cores: "00000000,0000ffff".
    [[nodiscard]] std::string cores_of(int numa) const;
    [[nodiscard]] SysfsCpu cpu() const;

    /// Returns whether a bridge sends transfers between devices below it through the CPU. Only root
    /// can read the necessary files.
    [[nodiscard]] bool redirects_peers(const std::string& bus_id) const;
    [[nodiscard]] bool has_iommu() const;
    /// Returns whether nvidia_peermem is loaded, by which any RDMA device reaches memory of GPUs.
    [[nodiscard]] bool has_peer_memory() const;

    /// Returns kResourceExhausted with the first entry that existed and could not be read for want
    /// of descriptors or memory: the other results are then incomplete.
    [[nodiscard]] const Status& shortage() const { return shortage_; }

   private:
    [[nodiscard]] std::string read(const std::string& path) const;
    [[nodiscard]] std::vector<std::string> list(const std::string& folder) const;
    [[nodiscard]] SysfsPciDevice pci_device(const std::string& bus_id) const;
    [[nodiscard]] std::vector<std::string> chain_of(const std::string& path) const;
    [[nodiscard]] std::vector<SysfsPort> rdma_ports() const;
    [[nodiscard]] std::string interface_of(const std::string& card) const;

    void note(const Status& fault) const;

    std::string root_;
    mutable Status shortage_;
};

}  // namespace pccl::sys
