// How a block is cut: into windows that a program runs over one after the other, and each window
// into the chunks that the program's slices name.
//
// Every rank computes the same cut from the same numbers. Chunk boundaries fall on cache lines,
// unless there are too many chunks in a message; the last chunks of a window may be shorter, or
// empty, and messages of no bytes are not sent.
#pragma once

#include <algorithm>
#include <cstddef>

#include "csrc/base/ids.h"

namespace pccl {

/// Elements [begin, begin + count) of a block.
struct Extent {
    std::size_t begin = 0;
    std::size_t count = 0;
};

struct Cut {
    std::size_t window = 1;  // elements of a block in one round
    int chunks = 1;          // of a window
    std::size_t grain = 1;   // chunks have a multiple of so many elements

    [[nodiscard]] std::size_t rounds(std::size_t block_count) const {
        return (block_count + window - 1) / window;
    }
    /// Elements of every chunk but the last ones, for a window of `length` elements.
    [[nodiscard]] std::size_t chunk_length(std::size_t length) const {
        if (chunks == 1) return length;
        const auto parts = static_cast<std::size_t>(chunks);
        const std::size_t even = (length + parts - 1) / parts;
        return (even + grain - 1) / grain * grain;
    }
    /// Chunks [first, first + number) of round `round` of a block of `block_count` elements: they
    /// adjoin.
    [[nodiscard]] Extent extent(std::size_t block_count, std::size_t round, int first,
                                int number) const {
        const std::size_t start = std::min(round * window, block_count);
        const std::size_t length = std::min(window, block_count - start);
        const std::size_t chunk = chunk_length(length);
        const std::size_t begin = std::min(static_cast<std::size_t>(first) * chunk, length);
        const std::size_t end = std::min(static_cast<std::size_t>(first + number) * chunk, length);
        return {start + begin, end - begin};
    }
};

}  // namespace pccl
