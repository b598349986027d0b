// SPDX-License-Identifier: Apache-2.0

// The net plug-in of this process as users see it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pccl/export.h>

namespace pccl::runtime {

struct NetDevice {
    std::string name;
    std::string pci_path;  // in /sys; empty: none
    std::uint64_t guid = 0;
    int megabits = 0;  // Mbit/s
    int port = 0;
    float latency_us = 0;  // 0: unknown
    int max_recvs = 0;
    int rail = -1;   // -1: unknown
    int plane = -1;  // likewise
};

struct NetPluginReport {
    std::string file;
    std::string symbol;  // ncclNetPlugin_v8
    std::string name;
    std::vector<NetDevice> devices;
    std::string failure;  // why it cannot be used; empty: it can, or PCCL_NET_PLUGIN names none
};

/// Starts the plug-in of PCCL_NET_PLUGIN, unless it has started. What is missing is part of the
/// report.
[[nodiscard]] PCCL_API NetPluginReport net_plugin_report();

}  // namespace pccl::runtime
