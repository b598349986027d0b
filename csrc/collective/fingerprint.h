// SPDX-License-Identifier: Apache-2.0

// Fingerprint of a collective: the header of its messages, and the comparison of two headers.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/abi/wire.h"
#include "csrc/collective/collective.h"
#include "csrc/schedule/source.h"

namespace pccl {

/// Returns whether only pairs of ranks have the lengths of the blocks between them.
[[nodiscard]] constexpr bool is_of_pairs(const abi::CollectiveHeader& header) {
    return header.lengths == abi::kLengthsOfPairs;
}

/// Returns whether elements of the output share memory on the header's rank.
[[nodiscard]] constexpr bool overlaps_itself(const abi::CollectiveHeader& header) {
    return (header.reduce_op & abi::kOverlaps) != 0;
}

/// Returns whether the header's rank rejects one of its own buffers.
[[nodiscard]] constexpr bool refuses(const abi::CollectiveHeader& header) {
    return (header.reduce_op & abi::kRefuses) != 0;
}

/// Returns the algorithm as PCCL_ALGORITHM names it; "schedule 1a2b3c4d", its tag, if it is not
/// built in.
[[nodiscard]] std::string algorithm_name(const abi::CollectiveHeader& header);

/// Returns "all_reduce #7 (sum of 1024 float32, by one_shot in windows of 0)", "barrier #8 (by
/// ...)".
[[nodiscard]] std::string describe(const abi::CollectiveHeader& header);
/// Returns "all_reduce #7 (sum of 1024 float32)", "barrier #8": the call without its algorithm.
[[nodiscard]] std::string describe_call(const abi::CollectiveHeader& header);

/// Fields of a call; the texts are literals.
struct CallFields {
    std::string_view collective{};  // "all_reduce", "barrier"
    std::string_view op{};          // "sum"; empty without a reduction
    std::string_view type{};        // "float32"; empty for a barrier, whose `count` is 0
    std::uint64_t count = 0;        // elements in the longest block
    Rank root = kNoRank;            // kNoRank: no root
};
[[nodiscard]] CallFields fields_of(const abi::CollectiveHeader& header);

/// Properties of a collective that must be equal on all ranks; operator and root only where they
/// apply.
struct Signature {
    schedule::CollectiveKind kind{};
    DataType type{};
    ReduceOp op{};
    Rank root = 0;
    // For blocks whose lengths all ranks have; otherwise 0.
    std::uint64_t count = 0;   // of the longest block
    std::uint64_t digest = 0;  // of all counts; 0: they are equal
    bool is_barrier = false;
    bool is_of_pairs = false;  // only pairs of ranks have the lengths of the blocks between them
    bool is_refused = false;   // as in Collective, like overlap
    std::uint64_t overlap = 0;
    auto operator<=>(const Signature&) const = default;
};
[[nodiscard]] Signature signature_of(const Collective& collective);
/// Returns the header without algorithm and history.
[[nodiscard]] abi::CollectiveHeader header_of(const Signature& signature);

/// Adds `value` to a digest (FNV-1a, one word at a time).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t digest, std::uint64_t value) {
    return (digest ^ value) * 0x100000001B3ULL;
}
inline constexpr std::uint64_t kOddMultiplier = 0x9E3779B97F4A7C15;  // 2^64 / the golden ratio
/// Mixes the digest so that its upper bits depend on all bits.
[[nodiscard]] constexpr std::uint64_t spread(std::uint64_t digest) {
    return (digest ^ (digest >> 32U)) * kOddMultiplier;
}
/// Returns half of a digest: zero only for zero, and never a reserved value of the header field.
[[nodiscard]] constexpr std::uint32_t folded(std::uint64_t digest) {
    const auto half = static_cast<std::uint32_t>(digest ^ (digest >> 32U));
    const bool means_another = half == abi::kLengthsOfPairs || (digest != 0 && half == 0);
    return means_another ? 1 : half;
}

/// Returns the part of a header that must be equal on all ranks: without lengths that only pairs
/// agree on.
[[nodiscard]] abi::CollectiveHeader common_part(abi::CollectiveHeader header);

/// Returns a digest of the whole header; its upper bits are mixed best.
[[nodiscard]] std::uint64_t digest_of(const abi::CollectiveHeader& header);

/// Returns the history of the collective after `header`: ranks that once called different
/// collectives differ permanently, so that a later call detects a mismatch that was not compared
/// (two roots of one broadcast).
[[nodiscard]] std::uint32_t history_after(const abi::CollectiveHeader& header);

struct Sides {
    Rank self = 0;
    Rank peer = 0;
};
/// Advice of mismatch messages about the order of calls.
inline constexpr std::string_view kCallAlike =
    "call the same collectives in the same order on all ranks";
/// Returns the error for two headers that differ: kMismatch naming the difference and both sides,
/// or kPeerLost if `theirs` is no valid header.
[[nodiscard]] Status difference(const abi::CollectiveHeader& ours,
                                const abi::CollectiveHeader& theirs, const Sides& sides);

/// Returns ok if the headers are equal, otherwise their difference().
[[nodiscard]] inline Status compare(const abi::CollectiveHeader& ours,
                                    const abi::CollectiveHeader& theirs, const Sides& sides) {
    if (std::memcmp(&ours, &theirs, sizeof ours) == 0) return Status::ok();
    return difference(ours, theirs, sides);
}

}  // namespace pccl
