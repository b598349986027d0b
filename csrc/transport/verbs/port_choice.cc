// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/port_choice.h"

#include <algorithm>

#include "csrc/base/text/text.h"
#include "csrc/transport/verbs/gid_choice.h"

namespace pccl::transport::verbs {
namespace {

using sys::verbs::DeviceInfo;
using sys::verbs::PortInfo;

/// Returns why a port is not used; ok where it is.
Status check(const DeviceInfo& device, const PortInfo& port, const PortWishes& wishes) {
    if (!wishes.filter.takes(device.name, port.number))
        return Status::unavailable("left out by PCCL_IB_HCA");
    if (device.is_soft && !wishes.soft && wishes.filter.is_empty())
        return Status::unavailable(
            "an emulated device, which is used where PCCL_TRANSPORTS or PCCL_IB_HCA names it");
    if (device.is_iwarp)
        return Status::unavailable("an iWARP device: writes with immediate data are missing");
    if (!port.is_active)
        return Status::unavailable(concat("its state is ", port.state,
                                          "; look at its cable, and at the subnet manager of an "
                                          "InfiniBand network"));
    return Status::ok();
}

}  // namespace

Result<std::vector<std::shared_ptr<Port>>> choose_ports(const PortWishes& wishes, Waiter& waiter) {
    PCCL_ASSIGN_OR_RETURN(std::vector<DeviceInfo> devices, sys::verbs::list_devices());
    std::ranges::sort(devices, {}, &DeviceInfo::name);
    std::vector<std::shared_ptr<Port>> chosen;
    std::string reasons;
    for (const DeviceInfo& device : devices) {
        std::shared_ptr<Adapter> adapter;
        for (const PortInfo& port : device.ports) {
            Status fits = check(device, port, wishes);
            const auto gid = fits.is_ok() ? choose_gid(port, wishes.interfaces, wishes.gid_index)
                                          : Result<GidChoice>(fits);
            fits = gid.status();
            if (fits.is_ok() && !chosen.empty() &&
                chosen.front()->info.is_ethernet != port.is_ethernet)
                fits = Status::unavailable("its link layer differs from the first port's");
            if (fits.is_ok() && adapter == nullptr) {
                auto opened = Adapter::open(device.name, waiter);
                fits = opened.status();
                if (opened.is_ok()) adapter = *std::move(opened);
            }
            if (!fits.is_ok()) {
                reasons += concat("; ", device.name, ":", port.number, ": ", fits.message());
                continue;
            }
            if (chosen.size() == kMostPortsUsed) break;
            chosen.push_back(std::make_shared<Port>(Port{adapter, port, gid->entry, gid->reason}));
        }
    }
    if (!chosen.empty()) return chosen;
    return Status::unavailable(
        concat("no RDMA port is usable",
               reasons.empty() ? "; this machine shows no RDMA device" : reasons));
}

}  // namespace pccl::transport::verbs
