// SPDX-License-Identifier: Apache-2.0

// Headers of collective calls.
#pragma once

#include <cstdint>

#include "csrc/collective/fingerprint.h"

namespace pccl::comm {

inline constexpr std::uint64_t kInquestSequence = 7;

inline abi::CollectiveHeader call(std::uint8_t kind, std::uint64_t count, std::uint32_t root) {
    abi::CollectiveHeader header{};
    header.magic = abi::kCollectiveMagic;
    header.kind = kind;
    header.root = static_cast<std::uint16_t>(root);
    header.sequence = kInquestSequence;
    header.count = count;
    return header;
}

inline abi::CollectiveHeader of_pairs(abi::CollectiveHeader header) {
    header.lengths = abi::kLengthsOfPairs;
    return header;
}

inline constexpr auto kBroadcast = static_cast<std::uint8_t>(schedule::CollectiveKind::kBroadcast);

inline constexpr auto kAllToAll = static_cast<std::uint8_t>(schedule::CollectiveKind::kAllToAll);

}  // namespace pccl::comm
