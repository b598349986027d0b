// The algorithms that a user asks for, by collective: "all_reduce=ring,all_gather=bruck".
#pragma once

#include <string_view>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/collective/collective.h"

namespace pccl {

/// kInvalidArgument names the item that is not a collective and an algorithm.
[[nodiscard]] PCCL_API Status check_algorithm_list(std::string_view list);

/// What `list` asks for; empty where it does not name `kind`.
[[nodiscard]] std::string_view algorithm_listed(std::string_view list, CollectiveKind kind);

}  // namespace pccl
