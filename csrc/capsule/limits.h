// SPDX-License-Identifier: Apache-2.0

// Limits of a capsule, so that bytes of any origin are read, decoded and verified within bounded
// time and memory, and the error for a capsule that is rejected.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pccl/status.h>
#include "csrc/base/text/text.h"

namespace pccl::capsule {

inline constexpr std::size_t kMostBytes = 32U << 20U;  // of a file
inline constexpr std::size_t kMostManifestBytes = 1U << 20U;
inline constexpr std::size_t kLongestText = 4096;  // of author, licence and note, in bytes
inline constexpr std::size_t kLongestName = 64;
/// Numbers of ranks in one file.
inline constexpr std::size_t kMostNumbersOfRanks = 1024;
inline constexpr int kMostSlots = 64;
/// Links that a manifest lists individually.
inline constexpr std::size_t kMostListedLinks = 4096;
/// Upper bound, in bytes of a call, of a range of sizes.
inline constexpr std::uint64_t kMostSize = 1ULL << 50U;
inline constexpr int kMostChannels = 256;
/// Chunks in the buffers of all ranks.
inline constexpr long long kMostPlaces = 1LL << 25U;
/// Lanes, steps, slices and dependencies of all ranks.
inline constexpr long long kMostParts = 1LL << 24U;
/// Chunks that all steps move.
inline constexpr long long kMostMoved = 1LL << 26U;
/// Steps times lanes of ranks with several lanes: the cost of the race check.
inline constexpr long long kMostOrdered = 1LL << 30U;

template <typename... Parts>
Status refuse(const Parts&... parts) {
    return Status::invalid_argument(concat(parts...));
}

}  // namespace pccl::capsule
