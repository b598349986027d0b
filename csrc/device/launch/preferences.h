// How the users of a group of GPUs would have it launch what the library chooses freely. The same
// on all ranks, as plans are.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "csrc/abi/device_team.h"
#include "csrc/base/export.h"
#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/kernels/plan.h"

namespace pccl::device {

struct Preferences {
    bool copy_engines = false;  // copy engines, for large blocks that are moved as they are
    int most_blocks = abi::kMostBlocks;  // of one launch, but for one that each message has
    std::optional<kernels::Protocol> protocol{};  // where it can carry the blocks
};

/// kInvalidArgument says what is possible.
[[nodiscard]] PCCL_API Status check_preferences(const Preferences& preferences);

/// Whether a rank's own are those of rank 0, whose `copy_engines` count for all. kMismatch.
[[nodiscard]] Status check_alike(Rank rank, const Preferences& own, const Preferences& leading);

/// As another rank hears of them: "1 128 any"; and back, kInvalidArgument.
[[nodiscard]] std::string to_string(const Preferences& preferences);
[[nodiscard]] Result<Preferences> parse_preferences(std::string_view& line);

}  // namespace pccl::device
