// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/topo/machine/completion.h"
#include "csrc/topo/machine/rates.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {
namespace {

constexpr int kUnknownPcieLanes = 255;

/// Rounds a bandwidth to one decimal, for messages.
double rounded(double rate) { return std::round(rate * 10) / 10; }

/// Repair of missing, zero or impossible speeds and widths.
class LinkRepair {
   public:
    void run(Machine& machine, Warnings& warnings) {
        for (Cpu& cpu : machine.cpus)
            for (PciDevice& device : cpu.devices) mend(device);
        speeds_.warn(warnings, "unknown_link_speed", "the speed of the PCIe link is not known",
                     "what such devices usually have");
        widths_.warn(warnings, "unknown_link_width",
                     "the width of the PCIe link is not known: hypervisors hide it",
                     concat(kUsualPcieLanes, " lanes"));
        slow_.warn(
            warnings, "slow_switch_link",
            "the link of the switch is far slower than that of a device below it, as virtual "
            "switches claim",
            "the device's speed and width");
    }

   private:
    void mend(PciDevice& device) {  // NOLINT(misc-no-recursion)
        if (!leads_somewhere(device)) return;
        for (PciDevice& child : device.children) mend(child);
        const PciDevice* widest = widest_child(device);
        const std::string bus_id = device.bus_id.value_or("");
        if (!pcie_lane_rate(device.link_speed.value_or(""))) {
            device.link_speed.offer(
                widest != nullptr ? widest->link_speed.value_or("") : usual_speed(device),
                source_for(device.link_speed));
            if (!is_virtual(device)) speeds_.add(bus_id);
        }
        if (const int lanes = device.link_width.value_or(0);
            lanes == 0 || lanes == kUnknownPcieLanes) {
            device.link_width.offer(kUsualPcieLanes, source_for(device.link_width));
            if (!is_virtual(device)) widths_.add(bus_id);
        }
        if (widest != nullptr) mend_switch(device, *widest);
    }

    /// Returns true for virtio devices: they have no link that could be slow.
    static bool is_virtual(const PciDevice& device) {
        return device.vendor.value_or("") == "0x1af4";
    }

    void mend_switch(PciDevice& device, const PciDevice& widest) {
        constexpr double kImplausible = 0.25;
        if (pci_rate(device) > kImplausible * pci_rate(widest)) return;
        // This also replaces values that were repaired just before.
        device.link_speed = {*widest.link_speed, Source::kRepair};
        device.link_width = {*widest.link_width, Source::kRepair};
        slow_.add(device.bus_id.value_or(""));
    }

    static const PciDevice* widest_child(const PciDevice& device) {
        const PciDevice* widest = nullptr;
        for (const PciDevice& child : device.children)
            if (leads_somewhere(child) &&
                (widest == nullptr || pci_rate(child) > pci_rate(*widest)))
                widest = &child;
        return widest;
    }

    static std::string usual_speed(const PciDevice& device) {
        constexpr int kFifthGeneration = 300'000;  // Mb/s of a port that requires it
        constexpr int kFourthGeneration = 150'000;
        int sm = 0;
        for (const Gpu& gpu : device.gpus) sm = std::max(sm, gpu.sm.value_or(0));
        int speed = 0;
        for (const Nic& nic : device.nics)
            for (const Net& net : nic.nets) speed = std::max(speed, net.speed.value_or(0));
        if (speed >= kFifthGeneration) sm = std::max(sm, 90);
        if (speed >= kFourthGeneration) sm = std::max(sm, 80);
        return std::string(usual_link_speed(sm));
    }

    template <typename T>
    static Source source_for(const Attribute<T>& attribute) {
        return attribute.is_known() ? Source::kRepair : Source::kDefault;
    }

    Subjects speeds_, widths_, slow_;
};

/// GPUs of one host with their NVLinks.
class NvLinkRepair {
   public:
    explicit NvLinkRepair(Warnings& warnings) : warnings_(warnings) {}

    void add(PciDevice& device) {
        for (Gpu& gpu : device.gpus) gpus_.push_back({device.bus_id.value_or(""), &device, &gpu});
    }

    void run() {
        for (GpuLinks& entry : gpus_) drop_loops(entry);
        for (GpuLinks& entry : gpus_) compare_ends(entry);
        loops_.warn(warnings_, "nvlink_to_itself", "the NVLinks of the GPU lead to itself",
                    "they are left out");
        uneven_.warn(warnings_, "uneven_nvlink",
                     "the two ends of an NVLink disagree about how many links there are",
                     "the smaller number");
        for (const GpuLinks& entry : gpus_) compare_with_siblings(entry);
    }

   private:
    struct GpuLinks {
        std::string bus_id;
        PciDevice* device;
        Gpu* gpu;
    };

    void drop_loops(GpuLinks& entry) {
        const auto is_loop = [&](const NvLink& link) {
            return link.target.value_or("") == entry.bus_id;
        };
        if (std::erase_if(entry.gpu->nvlinks, is_loop) > 0) loops_.add(entry.bus_id);
    }

    [[nodiscard]] static int links_to(const Gpu& gpu, const std::string& target) {
        int count = 0;
        for (const NvLink& link : gpu.nvlinks)
            if (link.target.value_or("") == target) count += link.count.value_or(0);
        return count;
    }

    /// Compares both ends of each NVLink; the first NVLink element to a target absorbs the excess.
    void compare_ends(GpuLinks& entry) {
        for (NvLink& link : entry.gpu->nvlinks) {
            const std::string target = link.target.value_or("");
            const auto peer = std::find_if(gpus_.begin(), gpus_.end(), [&](const GpuLinks& other) {
                return other.bus_id == target;
            });
            if (peer == gpus_.end()) continue;
            const int excess = links_to(*entry.gpu, target) - links_to(*peer->gpu, entry.bus_id);
            if (excess == 0) continue;
            uneven_.add(entry.bus_id);
            if (excess > 0)
                link.count.offer(std::max(link.count.value_or(0) - excess, 0), Source::kRepair);
        }
    }

    [[nodiscard]] static int count(const Gpu& gpu) {
        int links = 0;
        for (const NvLink& link : gpu.nvlinks) links += link.count.value_or(0);
        return links;
    }

    void compare_with_siblings(const GpuLinks& entry) {
        int most = 0;
        for (const GpuLinks& other : gpus_)
            if (other.gpu->sm == entry.gpu->sm) most = std::max(most, count(*other.gpu));
        const int own = count(*entry.gpu);
        if (own >= most) return;
        const double rate = nvlink_rate(entry.gpu->sm.value_or(0));
        const double left = own > 0 ? own * rate : pci_rate(*entry.device);
        warnings_.push_back(
            {"missing_nvlinks", concat("gpu ", entry.gpu->dev.value_or(0), " (", entry.bus_id, ")"),
             concat("has ", own, " NVLinks where others have ", most, ": what includes it gets ",
                    rounded(left), " GB/s instead of ", rounded(most * rate)),
             ""});
    }

    Warnings& warnings_;
    std::vector<GpuLinks> gpus_;
    Subjects loops_, uneven_;
};

void repair_nvlinks(Machine& machine, Warnings& warnings) {
    std::map<std::string, NvLinkRepair> hosts;
    for (Cpu& cpu : machine.cpus) {
        NvLinkRepair& host = hosts.try_emplace(cpu.host.value_or(""), warnings).first->second;
        visit_devices(cpu.devices, [&host](PciDevice& device) { host.add(device); });
    }
    for (auto& [name, host] : hosts) host.run();
}

std::vector<Net*> ports_of(Machine& machine) {
    std::vector<Net*> ports;
    const auto add = [&ports](std::vector<Nic>& nics) {
        for (Nic& nic : nics)
            for (Net& net : nic.nets) ports.push_back(&net);
    };
    for (Cpu& cpu : machine.cpus) {
        add(cpu.nics);
        visit_devices(cpu.devices, [&add](PciDevice& device) { add(device.nics); });
    }
    return ports;
}

/// Leaves out slow ports: a management port among fast ones would slow every channel down.
void leave_out_slow_ports(Machine& machine, Warnings& warnings) {
    constexpr int kMuchSlower = 4;
    const std::vector<Net*> ports = ports_of(machine);
    std::vector<int> speeds;
    speeds.reserve(ports.size());
    for (const Net* port : ports) speeds.push_back(port->speed.value_or(0));
    if (speeds.empty()) return;
    const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
    std::nth_element(speeds.begin(), middle, speeds.end());
    Subjects slow;
    for (Net* port : ports) {
        port->usable = port->speed.value_or(0) > *middle / kMuchSlower;
        if (!port->usable) slow.add(port->name.value_or(""));
    }
    slow.warn(warnings, "slow_nic",
              concat("the port is more than ", kMuchSlower, " times slower than the median, ",
                     *middle, " Mb/s"),
              "plans leave it out");
}

void check_cpus(const Machine& machine, Warnings& warnings) {
    Subjects unknown;
    Subjects bare;
    for (const Cpu& cpu : machine.cpus) {
        if (cpu.numa.value_or(-1) < 0) unknown.add(concat("cpu ", &cpu - machine.cpus.data()));
        for (const PciDevice& device : cpu.devices)
            if (!device.gpus.empty() && !device.gpus.front().nvlinks.empty())
                bare.add(device.bus_id.value_or(""));
    }
    unknown.warn(warnings, "unknown_numa",
                 "the NUMA node is not known: a hypervisor may hide several behind it",
                 "devices below it count as one node");
    bare.warn(
        warnings, "hidden_switches",
        "a GPU with NVLinks hangs off the CPU without a PCIe switch: a hypervisor may hide the "
        "switches, so which NIC is near which GPU is not known",
        "");
}

void check_sharing(Machine& machine, Warnings& warnings) {
    Subjects shared;
    visit_devices(machine, [&shared](Cpu& /*cpu*/, PciDevice& device) {
        if (device.gpus.size() > 1) shared.add(device.bus_id.value_or(""));
    });
    shared.warn(warnings, "shared_gpu", "several ranks use the same GPU: they share its bandwidth",
                "");
}

}  // namespace

void repair(Machine& machine, Warnings& warnings) {
    check_cpus(machine, warnings);
    LinkRepair().run(machine, warnings);
    repair_nvlinks(machine, warnings);
    leave_out_slow_ports(machine, warnings);
    check_sharing(machine, warnings);
}

}  // namespace pccl::topo
