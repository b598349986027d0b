// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/machine/completion.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/topo/machine/attribute.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {
namespace {

constexpr int kUsualSm = 80;
constexpr int kUsualNetSpeed = 10'000;

/// Returns true also for a display device without a vendor: files from clouds contain none.
bool may_be_gpu(const PciDevice& device) {
    const std::string vendor = device.vendor.value_or("0x10de");
    return is_gpu_class(device) && vendor == "0x10de";
}

struct Family {
    int first;  // device ids of one generation
    int last;
    int sm;
};
constexpr std::array<Family, 9> kFamilies{{{0x1d80, 0x1dff, 70},
                                           {0x1e00, 0x1fff, 75},
                                           {0x2080, 0x20ff, 80},
                                           {0x2200, 0x22ff, 86},
                                           {0x2300, 0x237f, 90},
                                           {0x2380, 0x25ff, 86},
                                           {0x2600, 0x28ff, 89},
                                           {0x2900, 0x297f, 100},
                                           {0x3180, 0x31ff, 103}}};

/// Returns the sm by NVIDIA's device id.
std::optional<int> sm_of(const PciDevice& device) {
    if (device.vendor.value_or("") != "0x10de") return std::nullopt;
    const auto id = parse_number(device.device.value_or(""));
    for (const Family& family : kFamilies)
        if (id && *id >= family.first && *id <= family.last) return family.sm;
    return std::nullopt;
}

/// Returns true for chips that are sold with NVLinks; some are also sold without, as cards.
bool may_have_nvlinks(int sm) {
    constexpr std::array<int, 6> kWithNvlinks{60, 70, 80, 90, 100, 103};
    return std::ranges::find(kWithNvlinks, sm) != kWithNvlinks.end();
}

class Completion {
   public:
    Completion(Machine& machine, const Assumptions& assume, Warnings& warnings)
        : machine_(machine), assume_(assume), warnings_(warnings) {}

    void run() {
        describe_devices();
        for (Cpu& cpu : machine_.cpus) {
            complete_nets(cpu.nics);
            visit_devices(cpu.devices, [this, &cpu](PciDevice& device) {
                for (Gpu& gpu : device.gpus) complete(gpu, cpu, device);
                complete_nets(device.nics);
            });
        }
        for (const auto& [host, gpus] : described_)
            if (gpus.size() > 1 && std::ranges::none_of(gpus, has_nvlinks))
                for (const DescribedGpu& gpu : gpus) without_nvlinks_.add(gpu.bus_id);
        report();
    }

   private:
    struct DescribedGpu {
        std::string bus_id;
        bool has_nvlinks = false;
    };
    static bool has_nvlinks(const DescribedGpu& gpu) { return gpu.has_nvlinks; }

    /// Records a GPU whose type comes from a user's file.
    void note_described(const Gpu& gpu, const Cpu& cpu, const PciDevice& device) {
        const bool is_described = gpu.sm.is_known() && gpu.sm.source() == Source::kUserFile;
        if (is_described && may_have_nvlinks(*gpu.sm) && !assume_.nvlinks)
            described_[cpu.host.value_or("")].push_back(
                {device.bus_id.value_or(""), !gpu.nvlinks.empty()});
    }

    void describe_devices() {
        visit_devices(machine_, [this](Cpu& /*cpu*/, PciDevice& device) {
            if (device.gpus.empty() && may_be_gpu(device)) {
                device.gpus.emplace_back();
                describe_nvlinks(device.gpus.back());
                gpus_.add(*device.bus_id);
            }
            if (device.nics.empty() && is_nic_class(device)) {
                device.nics.emplace_back().nets.emplace_back();
                nics_.add(*device.bus_id);
            }
            if (!device.class_code.is_known() && device.children.empty() && device.gpus.empty() &&
                device.nics.empty())
                unknown_.add(*device.bus_id);
        });
    }

    void describe_nvlinks(Gpu& gpu) {
        const int count = assume_.nvlinks.value_or(0);
        if (count == 0) return;
        NvLink& link = gpu.nvlinks.emplace_back();
        link.target = {kHiddenTarget, Source::kAssumption};
        link.target_class = {kNvSwitchClass, Source::kAssumption};
        link.count = {count, Source::kAssumption};
    }

    void complete(Gpu& gpu, const Cpu& cpu, const PciDevice& device) {
        note_described(gpu, cpu, device);
        if (gpu.nvlinks.empty()) describe_nvlinks(gpu);
        gpu.dev.offer(next_free(gpu_indices_[cpu.host.value_or("")], gpu.dev), Source::kDefault);
        gpu.gdr.offer(1, Source::kDefault);
        if (gpu.sm.is_known()) return;
        if (assume_.sm) {
            gpu.sm.offer(*assume_.sm, Source::kAssumption);
            return;
        }
        const std::optional<int> usual = sm_of(device);
        gpu.sm.offer(usual.value_or(kUsualSm), Source::kDefault);
        if (!usual) without_sm_.add(*device.bus_id);
    }

    void complete_nets(std::vector<Nic>& nics) {
        for (Nic& nic : nics)
            for (Net& net : nic.nets) complete(net);
    }

    void complete(Net& net) {
        net.dev.offer(nets_, Source::kDefault);
        net.name.offer(concat("net", nets_), Source::kDefault);
        net.gdr.offer(1, Source::kDefault);
        ++nets_;
        if (net.speed.value_or(0) > 0) return;
        const bool is_assumed = assume_.net_speed.has_value();
        const bool was_wrong = net.speed.is_known();
        const Source source = was_wrong    ? Source::kRepair
                              : is_assumed ? Source::kAssumption
                                           : Source::kDefault;
        net.speed.offer(assume_.net_speed.value_or(kUsualNetSpeed), source);
        if (!is_assumed || was_wrong) without_speed_.add(*net.name);
    }

    /// Returns the smallest index that no GPU of the host has; a GPU with an index keeps it.
    static int next_free(std::set<int>& taken, const Attribute<int>& own) {
        int index = own.value_or(0);
        if (!own.is_known())
            while (taken.count(index) > 0) ++index;
        taken.insert(index);
        return index;
    }

    void report() {
        gpus_.warn(
            warnings_, "undescribed_gpu", "there is a display device, but nothing about the GPU",
            assume_.nvlinks ? "it counts as a GPU with the assumed NVLinks"
                            : "it counts as a GPU without NVLinks; assume nvlinks if it has some");
        without_nvlinks_.warn(
            warnings_, "undescribed_nvlinks",
            "several GPUs of a kind that mostly has NVLinks, and the file names none, as NCCL's "
            "files do that are completed on the machine",
            "they count as GPUs without; assume nvlinks if they have some, or 0 if not");
        nics_.warn(warnings_, "undescribed_nic",
                   "there is a network device, but nothing about its ports",
                   "it counts as one port that accesses GPU memory directly");
        unknown_.warn(warnings_, "unknown_device", "has no class, so it may be anything",
                      "it is left out");
        without_sm_.warn(warnings_, "unknown_sm", "the compute capability of the GPU is not known",
                         concat("sm ", kUsualSm, "; assume sm for another"));
        without_speed_.warn(warnings_, "unknown_net_speed", "the speed of the port is not known",
                            concat(assume_.net_speed.value_or(kUsualNetSpeed),
                                   " Mb/s; assume net_speed for another"));
    }

    Machine& machine_;
    const Assumptions& assume_;
    Warnings& warnings_;
    std::map<std::string, std::set<int>> gpu_indices_;
    int nets_ = 0;
    std::map<std::string, std::vector<DescribedGpu>> described_;  // by host
    Subjects gpus_, nics_, unknown_, without_sm_, without_speed_, without_nvlinks_;
};

Status check_range(const char* name, const std::optional<int>& value, int low, int high) {
    if (!value || (*value >= low && *value <= high)) return Status::ok();
    return Status::invalid_argument(
        concat("assume ", name, "=", *value, ": must be from ", low, " to ", high));
}

}  // namespace

Status check(const Assumptions& assume) {
    PCCL_TRY(check_range("sm", assume.sm, 10, 999));
    PCCL_TRY(check_range("nvlinks", assume.nvlinks, 0, 1024));
    return check_range("net_speed", assume.net_speed, 1, 100'000'000);
}

void complete(Machine& machine, const Assumptions& assume, Warnings& warnings) {
    Completion(machine, assume, warnings).run();
}

}  // namespace pccl::topo
