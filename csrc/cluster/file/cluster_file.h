// SPDX-License-Identifier: Apache-2.0

// Reader of cluster files in JSON; Python converts YAML to JSON first.
#pragma once

#include <cstddef>
#include <string_view>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// Limit in bytes.
constexpr std::size_t kLongestClusterFile = std::size_t{8} << 20U;

/// Parses a cluster file; `name` names it in error messages, "<name>: <where>: <expected>".
///
/// Without switches there is one, "fabric", in this process, to which every device has two ports.
/// Checks that every phase has ports for its links.
[[nodiscard]] PCCL_API Result<Description> parse_cluster_file(std::string_view text,
                                                              std::string_view name);

}  // namespace pccl::cluster
