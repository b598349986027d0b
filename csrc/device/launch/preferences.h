// SPDX-License-Identifier: Apache-2.0

// Names of protocols, and user preferences for the launches of a GPU group, where the library
// chooses freely. They are the same on all ranks, like plans.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/abi/device_team.h"
#include "csrc/base/ids.h"
#include "csrc/kernels/plan.h"

namespace pccl::device {

struct Preferences {
    bool copy_engines = false;  // use copy engines for large blocks that are moved unchanged
    int most_blocks = abi::kMostBlocks;           // of a launch; each message has at least one
    std::optional<kernels::Protocol> protocol{};  // where it can carry the blocks
};

/// Returns kInvalidArgument with the valid values where a preference is not one of them.
[[nodiscard]] PCCL_API Status check_preferences(const Preferences& preferences);

/// Checks that a rank's preferences equal those of rank 0, whose `copy_engines` apply to all.
/// kMismatch.
[[nodiscard]] Status check_alike(Rank rank, const Preferences& own, const Preferences& leading);

/// Converts to the form that ranks exchange, "1 128 any", and back; kInvalidArgument.
[[nodiscard]] std::string to_string(const Preferences& preferences);
[[nodiscard]] Result<Preferences> parse_preferences(std::string_view& line);

/// Returns "ll", "direct", "staggered", "copy_engine" or "ll128", as docs/reference/gpus.md
/// explains them.
[[nodiscard]] PCCL_API std::string_view name_of(kernels::Protocol protocol);

/// Returns the name by which ranks exchange a protocol. These names were formerly those of users.
[[nodiscard]] PCCL_API std::string_view wire_name_of(kernels::Protocol protocol);

/// Returns the protocol with that name, of either kind. kInvalidArgument lists the names for users.
[[nodiscard]] PCCL_API Result<kernels::Protocol> protocol_named(std::string_view name);

}  // namespace pccl::device
