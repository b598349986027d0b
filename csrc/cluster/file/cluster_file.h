// A cluster file, as JSON; what Python reads of YAML comes here as JSON, too.
#pragma once

#include <cstddef>
#include <string_view>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// In bytes.
constexpr std::size_t kLongestClusterFile = std::size_t{8} << 20U;

/// `name` stands for the file in messages, which are "<name>: <where>: <what would be right>".
///
/// Without switches there is one, "fabric", in this process, to which every device has two ports.
/// Every phase is checked to have ports for its links.
[[nodiscard]] PCCL_API Result<Description> parse_cluster_file(std::string_view text,
                                                              std::string_view name);

}  // namespace pccl::cluster
