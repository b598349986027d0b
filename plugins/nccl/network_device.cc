// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/network_device.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "csrc/base/text/text.h"
#include "plugins/nccl/wire.h"

namespace pccl::nccl {
namespace {

static_assert(kMostPaths == transport::tcp::kMostPaths);

constexpr int kUnknownMegabits = 10'000;  // as NCCL assumes

std::string pci_path_of(const std::string& interface) {
    std::error_code error;
    const auto path = std::filesystem::canonical("/sys/class/net/" + interface + "/device", error);
    return error ? std::string() : path.string();
}

}  // namespace

Result<NetworkDevice> make_network_device(std::vector<sys::Interface> interfaces,
                                          const std::string& spec) {
    sys::examine_interfaces(interfaces);
    auto best = transport::tcp::one_of_each(interfaces, spec);
    if (spec.empty()) transport::tcp::drop_internal(best);
    // The error for no interface lists all of them.
    PCCL_ASSIGN_OR_RETURN(auto ordered,
                          sys::candidate_interfaces(best.empty() ? interfaces : best, spec));
    NetworkDevice device;
    for (const sys::Interface& interface : ordered) {
        device.name += concat(device.name.empty() ? "" : "+", interface.name);
        const int megabits = sys::megabits_of(interface.name);
        device.megabits += megabits > 0 ? megabits : kUnknownMegabits;
    }
    device.pci_path = pci_path_of(ordered.front().name);
    device.interfaces = std::move(ordered);
    return device;
}

}  // namespace pccl::nccl
