// The algorithms that a user asks for, by collective: "all_reduce=ring,all_gather=bruck".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/collective/collective.h"
#include "csrc/schedule/catalogue.h"

namespace pccl {

/// kInvalidArgument names the item that is not a collective and an algorithm, or whose algorithm,
/// a built-in one, makes other collectives alone. Other names may be those of capsules.
[[nodiscard]] PCCL_API Status check_algorithm_list(std::string_view list);

/// A line for each algorithm that is neither a segment's nor in `catalogue`, with what there is.
[[nodiscard]] PCCL_API std::vector<std::string> unknown_algorithms(
    std::string_view list, const schedule::Catalogue& catalogue);

/// What `list` asks for; empty where it does not name `kind`.
[[nodiscard]] std::string_view algorithm_listed(std::string_view list, CollectiveKind kind);

}  // namespace pccl
