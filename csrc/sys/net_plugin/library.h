// SPDX-License-Identifier: Apache-2.0

// The file of a net plug-in, found as NCCL finds it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/net_plugin/table.h"

namespace pccl::sys::net_plugin {

/// Name that NCCL opens without a setting.
inline constexpr const char* kUsualName = "libnccl-net.so";

/// Opened plug-in. It is never closed: its threads may run its code.
struct Library {
    std::string file;    // without symbolic links where that can be determined
    std::string symbol;  // ncclNetPlugin_v8
    std::unique_ptr<Table> table;
};

/// Returns the names that NCCL opens, in this order: `name`, then libnccl-net-`name`.so unless
/// `name` is a path or the name of a library.
[[nodiscard]] std::vector<std::string> library_names(const std::string& name);

/// Opens the plug-in `name`, and chooses the newest version of its table up to `newest`.
/// kInvalidArgument where there is no such file; kUnavailable, with the file and what is wrong,
/// where it has no table of a known version, or a table without a required function.
[[nodiscard]] Result<Library> open_library(const std::string& name,
                                           int newest = net::kNewestVersion);

}  // namespace pccl::sys::net_plugin
