// How a session is named: by its user, and by the incarnation of it that is meant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "csrc/base/status.h"

namespace pccl::p2p {

/// Sessions have no ranks: where the transports ask for one, it is kNoRank.
struct SessionId {
    static constexpr std::size_t kLongestName = 64;

    std::string name;
    /// Random, and another one each time that a session is made, so that what is left of one that
    /// has died is never taken for its successor's.
    std::uint64_t incarnation = 0;

    bool operator==(const SessionId&) const = default;
};

/// kInvalidArgument unless it has 1 to kLongestName printable ASCII characters, and no blank.
[[nodiscard]] PCCL_API Status check_name(std::string_view name);

}  // namespace pccl::p2p
