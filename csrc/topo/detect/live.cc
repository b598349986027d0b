// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/detect/live.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/topo/machine/rates.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {
namespace {

constexpr const char* kGpuClass = "0x030200";

bool is_gpu(const sys::SysfsPciDevice& device) {
    return device.class_code.starts_with("0x03") && device.vendor == "0x10de";
}

void offer(Attribute<std::string>& attribute, const std::string& value) {
    if (!value.empty()) attribute.offer(value, Source::kSysfs);
}

std::string_view speed_of_generation(int generation) {
    constexpr std::array<std::string_view, 6> kSpeeds{"2.5 GT/s PCIe",  "5.0 GT/s PCIe",
                                                      "8.0 GT/s PCIe",  "16.0 GT/s PCIe",
                                                      "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
    const int index = std::clamp(generation, 1, static_cast<int>(kSpeeds.size())) - 1;
    return kSpeeds[static_cast<std::size_t>(index)];
}

bool is_rdma_hardware(const sys::SysfsPort& port) { return port.rdma && port.emulated_on.empty(); }

/// Leaves out interfaces that an emulated RDMA device uses.
std::vector<sys::SysfsPort> without_replaced(std::vector<sys::SysfsPort> ports) {
    std::set<std::string> replaced;
    for (const sys::SysfsPort& port : ports) replaced.insert(port.emulated_on);
    std::erase_if(ports, [&](const sys::SysfsPort& port) {
        return !port.rdma && replaced.count(port.name) > 0;
    });
    return ports;
}

class Observer {
   public:
    Observer(const sys::Sysfs& sysfs, const std::vector<sys::NvmlGpu>* gpus, Warnings& warnings,
             const DmabufProbe& takes_dmabuf)
        : sysfs_(sysfs),
          gpus_(gpus),
          warnings_(warnings),
          takes_dmabuf_(takes_dmabuf),
          ports_(without_replaced(sysfs.ports())) {
        for (sys::SysfsPciDevice& device : sysfs.pci_devices())
            devices_.emplace(device.bus_id, std::move(device));
    }

    Machine run() {
        add_cpus();
        const std::set<std::string> cards = cards_in_use();
        for (const auto& [bus_id, device] : devices_) {
            if (is_gpu(device) && !is_hidden(bus_id)) describe_gpu(place(device));
            if (cards.count(bus_id) > 0) describe_card(place(device));
        }
        if (cards.empty()) add_virtual_interfaces();
        warn_of_fabric();
        warn_of_peers();
        hidden_.warn(
            warnings_, "hidden_gpus",
            "the GPU is there, but NVML does not show it: this process, or its container, may "
            "not use it",
            "it is left out");
        std::erase_if(machine_.cpus, [](const Cpu& cpu) {
            return cpu.numa.value_or(-1) < 0 && cpu.devices.empty() && cpu.nics.empty();
        });
        return std::move(machine_);
    }

   private:
    void add_cpus() {
        std::vector<int> nodes = sysfs_.numa_nodes();
        only_node_ = nodes.size() == 1;
        nodes.push_back(-1);  // for devices with an unknown node
        const sys::SysfsCpu model = sysfs_.cpu();
        for (const int node : nodes) {
            Cpu& cpu = machine_.cpus.emplace_back();
            cpu.numa = {node, Source::kSysfs};
            if (node >= 0) offer(cpu.affinity, sysfs_.cores_of(node));
            offer(cpu.arch, model.arch);
            offer(cpu.vendor, model.vendor);
            if (model.family >= 0) cpu.family = {model.family, Source::kSysfs};
            if (model.model >= 0) cpu.model = {model.model, Source::kSysfs};
        }
    }

    [[nodiscard]] std::set<std::string> cards_in_use() const {
        std::set<std::string> rdma;
        std::set<std::string> all;
        for (const sys::SysfsPort& port : ports_) {
            all.insert(port.bus_id);
            if (is_rdma_hardware(port)) rdma.insert(port.bus_id);
        }
        return rdma.empty() ? all : rdma;
    }

    [[nodiscard]] const sys::NvmlGpu* in_nvml(const std::string& bus_id) const {
        if (gpus_ == nullptr) return nullptr;
        const auto found = std::find_if(gpus_->begin(), gpus_->end(), [&](const sys::NvmlGpu& gpu) {
            return gpu.bus_id == bus_id;
        });
        return found == gpus_->end() ? nullptr : &*found;
    }

    bool is_hidden(const std::string& bus_id) {
        const bool is_hidden = gpus_ != nullptr && in_nvml(bus_id) == nullptr;
        if (is_hidden) hidden_.add(bus_id);
        return is_hidden;
    }

    /// Returns the devices of a device's NUMA node. The node may be unknown on a machine with one
    /// node: then it is that node.
    std::vector<PciDevice>& root_of(const sys::SysfsPciDevice& device) {
        for (Cpu& cpu : machine_.cpus)
            if (cpu.numa.value_or(-1) == device.numa || (only_node_ && device.numa < 0))
                return cpu.devices;
        return machine_.cpus.back().devices;
    }

    /// Returns the place of a device in the tree. A switch consists of two bridges, and a root port
    /// of one: every other bridge on the path counts.
    PciDevice& place(const sys::SysfsPciDevice& device) {
        std::vector<PciDevice>* level = &root_of(device);
        for (std::size_t i = 1; i < device.above.size(); i += 2) {
            const auto bridge = devices_.find(device.above[i]);
            if (bridge == devices_.end()) continue;
            level = &find_or_add(*level, bridge->second, device.above[i - 1]).children;
        }
        return find_or_add(*level, device, device.above.empty() ? "" : device.above.back());
    }

    PciDevice& find_or_add(std::vector<PciDevice>& level, const sys::SysfsPciDevice& device,
                           const std::string& port) {
        for (PciDevice& known : level)
            if (*known.bus_id == device.bus_id) return known;
        PciDevice& added = level.emplace_back();
        added.bus_id = {device.bus_id, Source::kSysfs};
        offer(added.class_code, device.class_code);
        offer(added.vendor, device.vendor);
        offer(added.device, device.device);
        offer(added.subsystem_vendor, device.subsystem_vendor);
        offer(added.subsystem_device, device.subsystem_device);
        offer(added.link_speed, device.max_link_speed);
        if (device.max_link_width > 0) added.link_width = {device.max_link_width, Source::kSysfs};
        limit_to_port(added, port);
        return added;
    }

    /// Limits the link of a device to the speed of the port above it.
    void limit_to_port(PciDevice& device, const std::string& port) const {
        const auto found = devices_.find(port);
        if (found == devices_.end()) return;
        const auto own = pcie_lane_rate(device.link_speed.value_or(""));
        const auto limit = pcie_lane_rate(found->second.max_link_speed);
        if (own && limit && *limit < *own)
            device.link_speed = {found->second.max_link_speed, Source::kSysfs};
        const int width = found->second.max_link_width;
        if (width > 0 && width < device.link_width.value_or(0))
            device.link_width = {width, Source::kSysfs};
    }

    void describe_gpu(PciDevice& device) const {
        const sys::NvmlGpu* known = in_nvml(*device.bus_id);
        if (known == nullptr) return;
        Gpu& gpu = device.gpus.emplace_back();
        gpu.dev = {known->index, Source::kNvml};
        if (known->sm > 0) gpu.sm = {known->sm, Source::kNvml};
        if (known->max_link_generation > 0)
            device.link_speed.offer(std::string(speed_of_generation(known->max_link_generation)),
                                    Source::kNvml);
        if (known->max_link_width > 0)
            device.link_width.offer(known->max_link_width, Source::kNvml);
        if (known->c2c.count > 0)
            gpu.c2c = C2c{.bandwidth = {known->c2c.megabytes, Source::kNvml},
                          .count = {known->c2c.count, Source::kNvml}};
        if (!known->fabric.cluster.empty()) {
            gpu.extras.emplace_back("fabric_cluster", known->fabric.cluster);
            gpu.extras.emplace_back("fabric_clique", concat(known->fabric.clique));
        }
        std::map<std::pair<std::string, const char*>, int> ends;
        for (const sys::NvmlLink& link : known->links) ++ends[end_of(link)];
        for (const auto& [end, count] : ends)
            gpu.nvlinks.push_back({.target = {end.first, Source::kNvml},
                                   .target_class = {end.second, Source::kNvml},
                                   .count = {count, Source::kNvml}});
    }

    void warn_of_fabric() const {
        if (gpus_ == nullptr) return;
        Subjects starting;
        Subjects failed;
        for (const sys::NvmlGpu& gpu : *gpus_) {
            if (gpu.fabric.state == sys::NvmlFabric::FabricState::kStarting)
                starting.add(gpu.bus_id);
            if (gpu.fabric.error != 0) failed.add(gpu.bus_id);
        }
        starting.warn(warnings_, "fabric_starting",
                      "the NVSwitch fabric is not ready: is the fabric manager running?",
                      "the NVLinks count all the same");
        failed.warn(warnings_, "fabric_failed",
                    "the GPU could not join the NVSwitch fabric: its NVLinks carry nothing",
                    "the NVLinks count all the same");
    }

    void warn_of_peers() const {
        if (gpus_ == nullptr) return;
        Subjects pairs;
        for (const sys::NvmlGpu& gpu : *gpus_)
            for (const int other : gpu.cannot_read)
                pairs.add(concat("gpu ", gpu.index, " and gpu ", other));
        pairs.warn(warnings_, "no_peer_access",
                   "the driver does not let them access each other's memory",
                   has_peer_access(*gpus_) ? "" : "they reach each other through the CPU only");
    }

    [[nodiscard]] static std::pair<std::string, const char*> end_of(const sys::NvmlLink& link) {
        const std::string target = link.target.empty() ? kHiddenTarget : link.target;
        if (link.end == sys::NvLinkEnd::kGpu) return {target, kGpuClass};
        if (link.end == sys::NvLinkEnd::kCpu) return {target, kPowerCpuClass};
        return {kHiddenTarget, kNvSwitchClass};
    }

    /// Adds virtual interfaces, for a container or a network namespace without others.
    void add_virtual_interfaces() {
        for (const sys::SysfsPort& port : without_replaced(sysfs_.virtual_interfaces()))
            describe_port(port, machine_.cpus.front().nics.emplace_back().nets.emplace_back());
    }

    void describe_card(PciDevice& device) const {
        const auto is_here = [&](const sys::SysfsPort& port) {
            return port.bus_id == *device.bus_id;
        };
        const bool has_rdma = std::any_of(ports_.begin(), ports_.end(), [&](const auto& port) {
            return is_here(port) && is_rdma_hardware(port);
        });
        Nic& nic = device.nics.emplace_back();
        for (const sys::SysfsPort& port : ports_) {
            if (!is_here(port) || is_rdma_hardware(port) != has_rdma) continue;
            Net& net = nic.nets.emplace_back();
            describe_port(port, net);
            net.port = {port.port, Source::kSysfs};
        }
    }

    void describe_port(const sys::SysfsPort& port, Net& net) const {
        net.name = {port.name, Source::kSysfs};
        if (port.megabits > 0) net.speed = {port.megabits, Source::kSysfs};
        offer(net.guid, port.guid);
        net.gdr = gpu_access_of(port);
    }

    /// Returns whether a port reaches memory of GPUs, and what shows it.
    [[nodiscard]] Attribute<int> gpu_access_of(const sys::SysfsPort& port) const {
        if (!is_rdma_hardware(port)) return {0, Source::kSysfs};
        if (sysfs_.has_peer_memory()) return {1, Source::kSysfs};
        const bool has_gpus = gpus_ != nullptr && !gpus_->empty();
        if (!has_gpus || !takes_dmabuf_) return {0, Source::kSysfs};
        return {takes_dmabuf_(port.name) ? 1 : 0, Source::kVerbs};
    }

    const sys::Sysfs& sysfs_;
    const std::vector<sys::NvmlGpu>* gpus_;
    Warnings& warnings_;
    const DmabufProbe& takes_dmabuf_;
    std::vector<sys::SysfsPort> ports_;
    std::map<std::string, sys::SysfsPciDevice> devices_;
    bool only_node_ = false;
    Machine machine_;
    Subjects hidden_;
};

void enrich(Gpu& gpu, const Gpu& live) {
    gpu.dev.offer(live.dev);
    gpu.sm.offer(live.sm);
    gpu.gdr.offer(live.gdr);
    if (gpu.nvlinks.empty()) gpu.nvlinks = live.nvlinks;
    if (!gpu.c2c) gpu.c2c = live.c2c;
}

void enrich(PciDevice& device, const PciDevice& live) {
    device.class_code.offer(live.class_code);
    device.vendor.offer(live.vendor);
    device.device.offer(live.device);
    device.subsystem_vendor.offer(live.subsystem_vendor);
    device.subsystem_device.offer(live.subsystem_device);
    device.link_speed.offer(live.link_speed);
    device.link_width.offer(live.link_width);
    if (device.gpus.empty()) device.gpus = live.gpus;
    for (Gpu& gpu : device.gpus)
        if (!live.gpus.empty()) enrich(gpu, live.gpus.front());
    if (device.nics.empty()) device.nics = live.nics;
}

}  // namespace

Machine observe(const sys::Sysfs& sysfs, const std::vector<sys::NvmlGpu>* gpus, Warnings& warnings,
                const DmabufProbe& takes_dmabuf) {
    return Observer(sysfs, gpus, warnings, takes_dmabuf).run();
}

bool has_peer_access(const std::vector<sys::NvmlGpu>& gpus) {
    return gpus.size() < 2 || std::any_of(gpus.begin(), gpus.end(), [&](const sys::NvmlGpu& gpu) {
               return gpu.cannot_read.size() + 1 < gpus.size();
           });
}

void check_surroundings(const sys::Sysfs& sysfs, const Machine& machine, Warnings& warnings) {
    Subjects redirecting;
    bool has_gpus = false;
    Machine copy = machine;
    visit_devices(copy, [&](Cpu& /*cpu*/, PciDevice& device) {
        has_gpus |= !device.gpus.empty();
        if (!device.children.empty() && sysfs.redirects_peers(*device.bus_id))
            redirecting.add(*device.bus_id);
    });
    redirecting.warn(
        warnings, "acs_on",
        "access control sends transfers between devices of this switch through the CPU", "");
    if (has_gpus && sysfs.has_iommu())
        warnings.push_back(
            {"iommu_on", "this machine",
             "the IOMMU translates what devices send each other, which slows it down", ""});
}

void enrich(Machine& machine, const Machine& live) {
    Machine copy = live;
    std::map<std::string, PciDevice> known;
    visit_devices(copy, [&known](Cpu& /*cpu*/, PciDevice& device) {
        PciDevice alone = device;
        alone.children.clear();
        known.emplace(*device.bus_id, std::move(alone));
    });
    visit_devices(machine, [&known](Cpu& /*cpu*/, PciDevice& device) {
        const auto found = known.find(device.bus_id.value_or(""));
        if (found != known.end()) enrich(device, found->second);
    });
    for (Cpu& cpu : machine.cpus) {
        if (live.cpus.empty()) break;
        for (const Cpu& other : live.cpus)
            if (other.numa == cpu.numa) cpu.affinity.offer(other.affinity);
        cpu.arch.offer(live.cpus.front().arch);
        cpu.vendor.offer(live.cpus.front().vendor);
        cpu.family.offer(live.cpus.front().family);
        cpu.model.offer(live.cpus.front().model);
    }
}

}  // namespace pccl::topo
