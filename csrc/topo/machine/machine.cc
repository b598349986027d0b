// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/machine/machine.h"

#include <algorithm>

namespace pccl::topo {

bool leads_somewhere(const PciDevice& device) {  // NOLINT(misc-no-recursion)
    const auto has_nets = [](const Nic& nic) { return !nic.nets.empty(); };
    return !device.gpus.empty() || std::any_of(device.nics.begin(), device.nics.end(), has_nets) ||
           std::any_of(device.children.begin(), device.children.end(), leads_somewhere);
}

bool is_gpu_class(const PciDevice& device) {
    return device.class_code.value_or("").starts_with("0x03");
}

bool is_nic_class(const PciDevice& device) {
    return device.class_code.value_or("").starts_with("0x02");
}

}  // namespace pccl::topo
