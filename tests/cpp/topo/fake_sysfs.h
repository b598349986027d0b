// SPDX-License-Identifier: Apache-2.0

// A folder that looks like sysfs.
#pragma once

#include <filesystem>
#include <fstream>

#include "csrc/sys/nvml/nvml.h"

namespace pccl::topo {

namespace fs = std::filesystem;

/// A sysfs in a folder.
class FakeSysfs {
   public:
    FakeSysfs() : root_(fs::path(testing::TempDir()) / "pccl_sysfs") {
        fs::remove_all(root_);
        write("sys/devices/system/node/node0/cpumap", "0000ffff");
        write("sys/devices/system/node/node1/cpumap", "ffff0000");
        write("proc/cpuinfo",
              "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
              "model\t\t: 143\nmodel name\t: Xeon\n");
    }
    ~FakeSysfs() { fs::remove_all(root_); }
    FakeSysfs(const FakeSysfs&) = delete;
    FakeSysfs& operator=(const FakeSysfs&) = delete;

    void write(const std::string& path, const std::string& text) const {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text << "\n";
    }

    /// `chain` is the way from the root complex: "0000:07:01.0/0000:08:00.0".
    void add_device(const std::string& chain, const std::string& device_class, int numa,
                    const std::string& speed = "32.0 GT/s PCIe", int width = 16) const {
        const std::string folder = "sys/devices/pci0000:07/" + chain;
        write(folder + "/class", device_class);
        write(folder + "/vendor", device_class == "0x030200" ? "0x10de" : "0x15b3");
        write(folder + "/device", device_class == "0x030200" ? "0x2330" : "0x1021");
        write(folder + "/numa_node", std::to_string(numa));
        write(folder + "/max_link_speed", speed);
        write(folder + "/max_link_width", std::to_string(width));
        link("sys/bus/pci/devices/" + fs::path(chain).filename().string(), folder);
    }

    void add_rdma(const std::string& name, const std::string& chain,
                  const std::string& rate) const {
        const std::string card = "sys/class/infiniband/" + name;
        write(card + "/node_guid", "9a70:5000:03ae:6d94");
        write(card + "/ports/1/rate", rate);
        write(card + "/ports/1/state", "4: ACTIVE");
        link(card + "/device", "sys/devices/pci0000:07/" + chain);
    }

    /// Adds a device that the kernel emulates on an interface.
    void add_soft_rdma(const std::string& name, const std::string& interface,
                       const std::string& rate) const {
        const std::string card = "sys/class/infiniband/" + name;
        write(card + "/node_guid", "5054:00ff:fe12:3456");
        write(card + "/parent", interface);
        write(card + "/ports/1/rate", rate);
        write(card + "/ports/1/state", "4: ACTIVE");
    }

    /// Loads the kernel module by which RDMA devices reach memory of GPUs.
    void add_peer_memory() const { write("sys/module/nvidia_peermem/refcnt", "0"); }

    void add_ethernet(const std::string& name, const std::string& chain, int speed) const {
        write("sys/class/net/" + name + "/speed", std::to_string(speed));
        write("sys/class/net/" + name + "/operstate", "up");
        link("sys/class/net/" + name + "/device", "sys/devices/pci0000:07/" + chain);
    }

    [[nodiscard]] sys::Sysfs sysfs() const { return sys::Sysfs(root_.string()); }

   private:
    void link(const std::string& from, const std::string& to) const {
        fs::create_directories((root_ / from).parent_path());
        fs::create_directory_symlink(root_ / to, root_ / from);
    }

    fs::path root_;
};

inline const char* const kSwitch = "0000:07:01.0/0000:08:00.0";

inline const char* const kGpu = "0000:07:01.0/0000:08:00.0/0000:09:00.0/0000:0a:00.0";

inline const char* const kNic = "0000:07:01.0/0000:08:00.0/0000:09:01.0/0000:0b:00.0";

enum class HasPeerMemory { kNo, kYes };

inline void add_h100(const FakeSysfs& machine, HasPeerMemory access = HasPeerMemory::kYes) {
    machine.add_device("0000:07:01.0", "0x060400", 1);
    machine.add_device(kSwitch, "0x060400", 1);
    machine.add_device(std::string(kSwitch) + "/0000:09:00.0", "0x060400", 1);
    machine.add_device(std::string(kSwitch) + "/0000:09:01.0", "0x060400", 1, "16.0 GT/s PCIe");
    machine.add_device(kGpu, "0x030200", 1);
    machine.add_device(kNic, "0x020700", 1);
    machine.add_rdma("mlx5_0", kNic, "400 Gb/sec (4X NDR)");
    if (access == HasPeerMemory::kYes) machine.add_peer_memory();
    machine.add_device("0000:07:02.0", "0x020000", 1);
    machine.add_ethernet("eth0", "0000:07:02.0", 10000);
}

inline const std::vector<sys::NvmlGpu> kGpus{
    {.index = 0,
     .bus_id = "0000:0a:00.0",
     .sm = 90,
     .max_link_generation = 5,
     .max_link_width = 16,
     .links = std::vector<sys::NvmlLink>(18, {.target = {}, .end = sys::NvLinkEnd::kSwitch})}};

}  // namespace pccl::topo
