// The fingerprint of a collective: what every message of it opens with, and how two of them differ.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "csrc/abi/wire.h"
#include "csrc/base/status.h"
#include "csrc/collective/collective.h"
#include "csrc/schedule/source.h"

namespace pccl {

/// Whether only pairs of ranks know how long the blocks between them are.
[[nodiscard]] constexpr bool is_of_pairs(const abi::CollectiveHeader& header) {
    return header.lengths == abi::kLengthsOfPairs;
}

/// Whether elements of the output share memory on the rank whose header it is.
[[nodiscard]] constexpr bool overlaps_itself(const abi::CollectiveHeader& header) {
    return (header.reduce_op & abi::kOverlaps) != 0;
}

/// Whether the rank whose header it is refuses a buffer of its own.
[[nodiscard]] constexpr bool refuses(const abi::CollectiveHeader& header) {
    return (header.reduce_op & abi::kRefuses) != 0;
}

/// Of a header: as PCCL_ALGORITHM has it; "schedule 1a2b3c4d", its tag, where it is not built in.
[[nodiscard]] std::string algorithm_name(const abi::CollectiveHeader& header);

/// "all_reduce #7 (sum of 1024 float32, by one_shot in windows of 0)", "barrier #8 (by ...)".
[[nodiscard]] std::string describe(const abi::CollectiveHeader& header);
/// "all_reduce #7 (sum of 1024 float32)", "barrier #8": what was called, not how it runs.
[[nodiscard]] std::string describe_call(const abi::CollectiveHeader& header);

/// What was called, field by field; literals.
struct CallFields {
    std::string_view collective{};  // "all_reduce", "barrier"
    std::string_view op{};          // "sum"; empty where nothing is reduced
    std::string_view type{};        // "float32"; empty of a barrier, as `count` is 0
    std::uint64_t count = 0;        // elements in the longest block
    Rank root = kNoRank;            // where there is one
};
[[nodiscard]] CallFields fields_of(const abi::CollectiveHeader& header);

/// What all ranks of a collective must call alike: operator and root where they mean something.
struct Signature {
    schedule::CollectiveKind kind{};
    DataType type{};
    ReduceOp op{};
    Rank root = 0;
    // Of blocks whose lengths all ranks know; else 0.
    std::uint64_t count = 0;   // of the longest
    std::uint64_t digest = 0;  // of all counts; 0: they are alike
    bool is_barrier = false;
    bool is_of_pairs = false;  // only pairs of ranks know how long the blocks between them are
    bool is_refused = false;   // as Collective has it, and
    std::uint64_t overlap = 0;
    auto operator<=>(const Signature&) const = default;
};
[[nodiscard]] Signature signature_of(const Collective& collective);
/// Its header, but for how it runs and what came before it.
[[nodiscard]] abi::CollectiveHeader header_of(const Signature& signature);

/// One more `value` in a digest (FNV-1a, a word at a time).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t digest, std::uint64_t value) {
    return (digest ^ value) * 0x100000001B3ULL;
}
inline constexpr std::uint64_t kOddMultiplier = 0x9E3779B97F4A7C15;  // 2^64 / the golden ratio
/// The same digest with upper bits that depend on all of it.
[[nodiscard]] constexpr std::uint64_t spread(std::uint64_t digest) {
    return (digest ^ (digest >> 32U)) * kOddMultiplier;
}
/// Half of a digest; zero for zero alone, and nothing else that a header has in place of one.
[[nodiscard]] constexpr std::uint32_t folded(std::uint64_t digest) {
    const auto half = static_cast<std::uint32_t>(digest ^ (digest >> 32U));
    const bool means_another = half == abi::kLengthsOfPairs || (digest != 0 && half == 0);
    return means_another ? 1 : half;
}

/// What must be alike in the headers of all ranks: without the lengths that only pairs agree on.
[[nodiscard]] abi::CollectiveHeader common_part(abi::CollectiveHeader header);

/// Of the whole header; its upper bits are the best mixed.
[[nodiscard]] std::uint64_t digest_of(const abi::CollectiveHeader& header);

/// The history of a collective that follows on `header`: ranks that once called different ones
/// differ ever after, and so hear of it where nobody compared these (two roots of one broadcast).
[[nodiscard]] std::uint32_t history_after(const abi::CollectiveHeader& header);

struct Sides {
    Rank self = 0;
    Rank peer = 0;
};
/// What to do about it: the end of every such message.
inline constexpr std::string_view kCallAlike =
    "call the same collectives in the same order on all ranks";
/// Of two headers that differ: kMismatch that says in what, and both sides, or kPeerLost where
/// `theirs` is no header at all.
[[nodiscard]] Status difference(const abi::CollectiveHeader& ours,
                                const abi::CollectiveHeader& theirs, const Sides& sides);

/// ok when `theirs` is what `ours` is; else their difference().
[[nodiscard]] inline Status compare(const abi::CollectiveHeader& ours,
                                    const abi::CollectiveHeader& theirs, const Sides& sides) {
    if (std::memcmp(&ours, &theirs, sizeof ours) == 0) return Status::ok();
    return difference(ours, theirs, sides);
}

}  // namespace pccl
