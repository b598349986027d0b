// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/port_choice.h"

#include <algorithm>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::transport::verbs {
namespace {

using sys::verbs::DeviceInfo;
using sys::verbs::PortInfo;

/// Returns why a port is not used; ok where it is.
Status check(const DeviceInfo& device, const PortInfo& port, const PortWishes& wishes) {
    if (!wishes.filter.takes(device.name, port.number))
        return Status::unavailable("left out by PCCL_IB_HCA");
    if (device.is_iwarp)
        return Status::unavailable("an iWARP device: writes with immediate data are missing");
    if (device.is_soft && !wishes.soft && wishes.filter.is_empty())
        return Status::unavailable(
            "an emulated device, which is used where PCCL_TRANSPORTS or PCCL_IB_HCA names it");
    if (!port.is_active)
        return Status::unavailable(concat("its state is ", port.state,
                                          "; look at its cable, and at the subnet manager of an "
                                          "InfiniBand network"));
    return Status::ok();
}

}  // namespace

std::vector<JudgedPort> judge_ports(const PortWishes& wishes, std::vector<DeviceInfo> devices) {
    std::ranges::sort(devices, {}, &DeviceInfo::name);
    std::vector<JudgedPort> judged;
    const PortInfo* first = nullptr;
    std::size_t usable = 0;
    for (const DeviceInfo& device : devices) {
        for (const PortInfo& info : device.ports) {
            JudgedPort port{.device = device.name,
                            .info = info,
                            .port = check(device, info, wishes),
                            .gid = {},
                            .chosen = {}};
            if (port.port.is_ok() && first != nullptr && first->is_ethernet != info.is_ethernet)
                port.port = Status::unavailable("its link layer differs from the first port's");
            if (port.port.is_ok()) {
                auto chosen = choose_gid(info, wishes.interfaces, wishes.gid_index);
                port.gid = chosen.status();
                if (chosen.is_ok()) port.chosen = *std::move(chosen);
            }
            if (port.is_usable() && usable == kMostPortsUsed)
                port.port = Status::unavailable(
                    concat(kMostPortsUsed, " ports are used at most; PCCL_IB_HCA chooses them"));
            if (port.is_usable()) {
                ++usable;
                if (first == nullptr) first = &info;
            }
            judged.push_back(std::move(port));
        }
    }
    return judged;
}

Result<std::vector<JudgedPort>> judge_ports_of_process(std::vector<DeviceInfo> devices) {
    const Config& config = process_config();
    PCCL_TRY(check_settings());
    PCCL_ASSIGN_OR_RETURN(const auto transports, TransportFlags::parse(config.transports));
    PCCL_ASSIGN_OR_RETURN(HcaFilter filter, HcaFilter::parse(config.rdma.hca));
    PCCL_ASSIGN_OR_RETURN(auto all, sys::list_interfaces());
    sys::examine_interfaces(all);
    PCCL_ASSIGN_OR_RETURN(const auto interfaces,
                          sys::candidate_interfaces(all, config.socket_ifname));
    return judge_ports({.filter = std::move(filter),
                        .soft = transports.has(TransportKind::kVerbs),
                        .gid_index = config.rdma.gid_index,
                        .interfaces = interfaces},
                       std::move(devices));
}

Result<std::vector<std::shared_ptr<Port>>> choose_ports(const PortWishes& wishes, Waiter& waiter) {
    PCCL_ASSIGN_OR_RETURN(std::vector<DeviceInfo> devices, sys::verbs::list_devices());
    std::vector<std::shared_ptr<Port>> chosen;
    std::shared_ptr<Adapter> adapter;
    std::string reasons;
    for (const JudgedPort& port : judge_ports(wishes, std::move(devices))) {
        Status fits = port.refusal();
        if (fits.is_ok() && (adapter == nullptr || adapter->name() != port.device)) {
            auto opened = Adapter::open(port.device, waiter);
            fits = opened.status();
            if (opened.is_ok()) adapter = *std::move(opened);
        }
        if (fits.is_ok())
            chosen.push_back(std::make_shared<Port>(
                Port{.adapter = adapter,
                     .info = port.info,
                     .gid = port.chosen.entry,
                     .reason = port.chosen.reason,
                     .wishes = {{wishes.interfaces.begin(), wishes.interfaces.end()},
                                wishes.gid_index,
                                {wishes.networks.begin(), wishes.networks.end()}},
                     .subnet_bits = subnet_bits_of(port.chosen.entry, wishes.networks)}));
        else
            reasons += concat("; ", port.name(), ": ", fits.message());
    }
    if (!chosen.empty()) return chosen;
    return Status::unavailable(
        concat("no RDMA port is usable",
               reasons.empty() ? "; this machine shows no RDMA device" : reasons));
}

}  // namespace pccl::transport::verbs
