// The fingerprint of a collective: what every message of it opens with, and how two of them differ.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "csrc/abi/wire.h"
#include "csrc/base/status.h"
#include "csrc/schedule/schedule.h"

namespace pccl::comm {

/// Whether a block's length is known to its sender and receiver only: a header then holds the
/// length for that pair, and the choice of an algorithm may depend on the group alone.
[[nodiscard]] bool is_per_pair(schedule::CollectiveKind kind);

/// Of a header's algorithm number: as PCCL_ALGORITHM has it.
[[nodiscard]] std::string_view algorithm_name(std::uint8_t number);

/// "all_reduce #7 (sum of 1024 float32, by one_shot)": for messages.
[[nodiscard]] std::string describe(const abi::CollectiveHeader& header);

/// What must be alike in the headers of all ranks: without the lengths that only pairs agree on.
[[nodiscard]] abi::CollectiveHeader common_part(abi::CollectiveHeader header);

/// The history of a collective that follows on `header`: ranks that once called different ones
/// differ ever after, and so hear of it where nobody compared these (two roots of one broadcast).
[[nodiscard]] std::uint32_t history_after(const abi::CollectiveHeader& header);

struct Sides {
    Rank self = 0;
    Rank peer = 0;
};
/// Of two headers that differ: kMismatch that says both sides, or kPeerLost where `theirs` is no
/// header at all.
[[nodiscard]] Status difference(const abi::CollectiveHeader& ours,
                                const abi::CollectiveHeader& theirs, const Sides& sides);

/// ok when `theirs` is what `ours` is; else their difference().
[[nodiscard]] inline Status compare(const abi::CollectiveHeader& ours,
                                    const abi::CollectiveHeader& theirs, const Sides& sides) {
    if (std::memcmp(&ours, &theirs, sizeof ours) == 0) return Status::ok();
    return difference(ours, theirs, sides);
}

}  // namespace pccl::comm
