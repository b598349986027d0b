// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/rdma_report.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "csrc/sys/verbs/connection_manager.h"
#include "csrc/sys/verbs/device.h"
#include "csrc/transport/verbs/gpu_report.h"
#include "csrc/transport/verbs/port_choice.h"

namespace pccl::transport::verbs {
namespace {

RdmaPort describe_port(const sys::verbs::PortInfo& info) {
    RdmaPort port{.number = info.number,
                  .state = info.state,
                  .link_layer = info.is_ethernet ? "Ethernet" : "InfiniBand",
                  .gigabits = info.gigabits,
                  .mtu_bytes = info.mtu_bytes,
                  .lid = info.lid,
                  .gids = {},
                  .reason = {}};
    for (const sys::verbs::GidEntry& gid : info.gids)
        port.gids.push_back({gid.index, to_string(gid.type), gid.address()});
    return port;
}

RdmaDevice describe_device(const sys::verbs::DeviceInfo& info) {
    RdmaDevice device{.name = info.name,
                      .is_soft = info.is_soft,
                      .is_iwarp = info.is_iwarp,
                      .ports = {},
                      .gpu_access = {},
                      .failure = {}};
    for (const sys::verbs::PortInfo& port : info.ports) device.ports.push_back(describe_port(port));
    return device;
}

void add_choice(const JudgedPort& judged, std::vector<RdmaDevice>& devices) {
    const auto device = std::ranges::find(devices, judged.device, &RdmaDevice::name);
    const auto port = std::ranges::find(device->ports, judged.info.number, &RdmaPort::number);
    port->reason = judged.is_usable() ? judged.chosen.reason : judged.refusal().message();
    if (judged.is_usable()) port->gid_index = judged.chosen.entry.index;
}

}  // namespace

RdmaReport make_rdma_report() {
    RdmaReport report;
    const auto library = sys::verbs::libibverbs();
    if (!library.is_ok()) {
        report.failure = library.status().message();
        return report;
    }
    report.ibverbs_path = (*library)->path;
    report.version = (*library)->version;
    const auto manager = sys::verbs::find_connection_manager();
    report.rdmacm_failure = manager.status().message();
    if (manager.is_ok()) {
        report.rdmacm_path = manager->path;
        report.rdmacm_version = manager->version;
    }
    const auto names = sys::verbs::list_device_names();
    if (!names.is_ok() || names->empty()) {
        report.failure =
            names.is_ok() ? "this machine shows no RDMA device" : names.status().message();
        return report;
    }
    std::vector<sys::verbs::DeviceInfo> opened;
    for (const std::string& name : *names) {
        const auto device = sys::verbs::Device::open(name);
        if (!device.is_ok()) {
            report.devices.push_back({.name = name,
                                      .ports = {},
                                      .gpu_access = {},
                                      .failure = device.status().message()});
            continue;
        }
        opened.push_back((*device)->info());
        report.devices.push_back(describe_device(opened.back()));
        report.devices.back().gpu_access = describe_gpu_access(name);
    }
    const auto judged = judge_ports_of_process(std::move(opened));
    if (!judged.is_ok()) report.failure = judged.status().message();
    if (judged.is_ok())
        for (const JudgedPort& port : *judged) add_choice(port, report.devices);
    return report;
}

}  // namespace pccl::transport::verbs
