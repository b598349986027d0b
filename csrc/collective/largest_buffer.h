// How large a collective is, as sizes of capsules and users' questions count it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "csrc/schedule/schedule.h"

namespace pccl {

/// Bytes of the largest buffer of a collective over `ranks`, all of whose blocks have one length.
inline std::uint64_t largest_buffer(schedule::CollectiveKind kind, int ranks,
                                    std::uint64_t block_bytes) {
    const int blocks = std::max(schedule::blocks(kind, schedule::Buffer::kInput, ranks),
                                schedule::blocks(kind, schedule::Buffer::kOutput, ranks));
    return block_bytes * static_cast<std::uint64_t>(blocks);
}

}  // namespace pccl
