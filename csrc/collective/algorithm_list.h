// SPDX-License-Identifier: Apache-2.0

// List of requested algorithms by collective: "all_reduce=ring,all_gather=bruck".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/collective/collective.h"
#include "csrc/schedule/catalogue.h"

namespace pccl {

/// Returns kInvalidArgument naming an item that is not "collective=algorithm", or a built-in
/// algorithm that does not make that collective. Other names may be those of capsules.
[[nodiscard]] PCCL_API Status check_algorithm_list(std::string_view list);

/// Returns a line for each algorithm that is neither one for a segment nor in `catalogue`, with the
/// available ones.
[[nodiscard]] PCCL_API std::vector<std::string> unknown_algorithms(
    std::string_view list, const schedule::Catalogue& catalogue);

/// Returns the algorithm that `list` requests for `kind`; empty: none.
[[nodiscard]] std::string_view algorithm_listed(std::string_view list, CollectiveKind kind);

}  // namespace pccl
