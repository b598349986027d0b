// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/net_plugin.h"

#include "csrc/base/config.h"
#include "csrc/transport/netplugin/net_transport.h"

namespace pccl::runtime {

NetPluginReport net_plugin_report() {
    const Config& config = process_config();
    NetPluginReport report;
    if (config.net_plugin.empty()) return report;
    const auto started = sys::net_plugin::start_plugin(config.net_plugin, config.peer_timeout);
    if (!started.is_ok()) {
        report.failure = started.status().message();
        return report;
    }
    const sys::net_plugin::Plugin& plugin = **started;
    report.file = plugin.file();
    report.symbol = plugin.symbol();
    report.name = plugin.name();
    for (const auto& device : plugin.devices())
        report.devices.push_back({.name = device.name,
                                  .pci_path = device.pci_path,
                                  .guid = device.guid,
                                  .megabits = device.megabits,
                                  .port = device.port,
                                  .latency_us = device.latency_us,
                                  .max_recvs = device.max_recvs,
                                  .rail = device.rail,
                                  .plane = device.plane});
    return report;
}

}  // namespace pccl::runtime
