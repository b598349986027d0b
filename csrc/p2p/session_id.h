// SPDX-License-Identifier: Apache-2.0

// Identity of a session: the name that its user gives, and the incarnation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <pccl/status.h>

namespace pccl::p2p {

/// Sessions have no ranks: they pass kNoRank where a transport requires a rank.
struct SessionId {
    static constexpr std::size_t kLongestName = 64;

    std::string name;
    /// Random number, new for each session, so that the remains of a dead session are never
    /// mistaken for its successor's.
    std::uint64_t incarnation = 0;

    bool operator==(const SessionId&) const = default;
};

/// Returns kInvalidArgument unless the name has 1 to kLongestName printable ASCII characters
/// without blanks.
[[nodiscard]] PCCL_API Status check_name(std::string_view name);

}  // namespace pccl::p2p
