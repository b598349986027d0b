// SPDX-License-Identifier: Apache-2.0

// Cut of a block: into the chunks that a program's slices name, and of each chunk into windows that
// the program processes one after the other.
//
// Every rank computes the same cut from the same numbers. The chunk of an element depends on the
// length of its block alone, not on windows, and thus not on links: a program reduces an element in
// one order, with bitwise equal results on all links and GPUs. Chunks begin at multiples of
// kChunkAlignment bytes, unless a message has too many; the last ones may be shorter or empty, and
// messages of zero bytes are not sent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "csrc/abi/device_program.h"
#include "csrc/base/ids.h"
#include "csrc/schedule/schedule.h"

namespace pccl {

/// Elements [begin, begin + count) of a block.
struct ElementRange {
    std::size_t begin = 0;
    std::size_t count = 0;
};

/// Returns the number of elements between possible chunk boundaries.
constexpr std::size_t chunk_grain(std::size_t element_bytes) {
    return std::max<std::size_t>(abi::kChunkAlignment / element_bytes, 1);
}

struct Cut {
    static constexpr std::size_t kMostStrands = 8;

    std::size_t window = 1;  // elements of a block in one round, an equal share for each chunk
    int chunks = 1;          // number of chunks in a block
    std::size_t grain = 1;   // chunk lengths are multiples of this number of elements
    std::size_t windows_at_once = 1;  // maximum in flight on a strand
    std::size_t strands = 1;  // executors that take windows in turn, each with links of its own

    /// Returns the elements of every chunk but the last ones.
    [[nodiscard]] std::size_t chunk_length(std::size_t block_count) const {
        if (chunks == 1) return block_count;
        const auto parts = static_cast<std::size_t>(chunks);
        const std::size_t even = (block_count + parts - 1) / parts;
        return (even + grain - 1) / grain * grain;
    }
    /// Returns the maximum elements of a chunk in one round.
    [[nodiscard]] std::size_t piece_length() const {
        return window / static_cast<std::size_t>(chunks);
    }
    [[nodiscard]] std::size_t rounds(std::size_t block_count) const {
        return (chunk_length(block_count) + piece_length() - 1) / piece_length();
    }
    /// Returns the window with which a block takes as many rounds, but of nearly equal lengths,
    /// because the cost of a step is the same in each.
    [[nodiscard]] std::size_t even_window(std::size_t block_count) const {
        const std::size_t all = rounds(block_count);
        if (all <= 1) return window;
        const std::size_t piece = (chunk_length(block_count) + all - 1) / all;
        return (piece + grain - 1) / grain * grain * static_cast<std::size_t>(chunks);
    }
    /// Returns the elements that round `round` covers in a chunk of a block of `block_count`
    /// elements.
    [[nodiscard]] ElementRange extent(std::size_t block_count, std::size_t round, int chunk) const {
        const std::size_t length = chunk_length(block_count);
        const std::size_t begin = static_cast<std::size_t>(chunk) * length;
        const std::size_t first = begin + std::min(round * piece_length(), length);
        const std::size_t last = begin + std::min((round + 1) * piece_length(), length);
        const std::size_t start = std::min(first, block_count);
        return {start, std::min(last, block_count) - start};
    }
};

/// Returns the bytes of the largest buffer of a collective over `ranks` ranks with blocks of equal
/// length.
inline std::uint64_t largest_buffer(schedule::CollectiveKind kind, int ranks,
                                    std::uint64_t block_bytes) {
    const int blocks = std::max(schedule::blocks(kind, schedule::Buffer::kInput, ranks),
                                schedule::blocks(kind, schedule::Buffer::kOutput, ranks));
    return block_bytes * static_cast<std::uint64_t>(blocks);
}

}  // namespace pccl
