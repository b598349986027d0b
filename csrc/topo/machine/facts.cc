// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/machine/facts.h"

#include "csrc/base/text/text.h"
#include "csrc/topo/machine/machine_fields.h"

namespace pccl::topo {
namespace {

class FactLister {
   public:
    template <typename Element>
    void list(std::string device, Element& element) {
        device_ = std::move(device);
        list_fields(element, *this);
    }
    void list_nics(std::vector<Nic>& nics) {
        for (Nic& nic : nics)
            for (Net& net : nic.nets) list(net.name.value_or("net"), net);
    }

    void number(const char* name, const Attribute<int>& attribute, int /*low*/, int /*high*/) {
        add(name, attribute);
    }
    void text(const char* name, const Attribute<std::string>& attribute) { add(name, attribute); }
    void bus_id(const char* name, const Attribute<std::string>& attribute) { add(name, attribute); }
    void extras(const Extras& /*extras*/) {}

    [[nodiscard]] std::vector<Fact> take() { return std::move(facts_); }

   private:
    template <typename T>
    void add(const char* name, const Attribute<T>& attribute) {
        if (!attribute.is_known()) return;
        facts_.push_back({device_, name, concat(*attribute), attribute.source()});
    }

    std::string device_;
    std::vector<Fact> facts_;
};

}  // namespace

std::vector<Fact> facts(const Machine& machine) {
    Machine copy = machine;
    FactLister lister;
    for (Cpu& cpu : copy.cpus) {
        lister.list(concat("cpu ", &cpu - copy.cpus.data()), cpu);
        lister.list_nics(cpu.nics);
        visit_devices(cpu.devices, [&lister](PciDevice& device) {
            const std::string bus_id = device.bus_id.value_or("");
            lister.list(bus_id, device);
            for (Gpu& gpu : device.gpus) {
                lister.list(bus_id, gpu);
                for (NvLink& link : gpu.nvlinks) lister.list(bus_id, link);
                if (gpu.c2c) lister.list(bus_id, *gpu.c2c);
            }
            lister.list_nics(device.nics);
        });
    }
    return lister.take();
}

}  // namespace pccl::topo
