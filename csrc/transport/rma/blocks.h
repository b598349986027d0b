// SPDX-License-Identifier: Apache-2.0

// Blocks of one memory that a request moves, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/link.h"

namespace pccl::transport {

/// Range of a memory, in bytes; the entry of a list on the wire.
struct RmaExtent {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};
static_assert(sizeof(RmaExtent) == 16 && std::is_trivially_copyable_v<RmaExtent>);

/// Run of blocks of one length, or a list. If there are several blocks, none is empty.
class PCCL_API RmaBlocks {
   public:
    static constexpr std::size_t kMostListed = 128;

    RmaBlocks() = default;
    RmaBlocks(RmaExtent one) : first_(one) {}  // NOLINT: implicit by design
    /// Makes a run whose blocks start `stride` bytes apart. The total must fit into 64 bits.
    RmaBlocks(RmaExtent first, std::uint64_t stride, std::uint64_t count)
        : first_(first), stride_(stride), count_(count) {}
    /// Makes a list of two blocks or more, whose total must fit into 64 bits.
    explicit RmaBlocks(std::vector<RmaExtent> list)
        : first_(list.front()), count_(list.size()), list_(std::move(list)) {}

    [[nodiscard]] std::uint64_t count() const { return count_; }
    [[nodiscard]] const RmaExtent& first() const { return first_; }
    [[nodiscard]] std::uint64_t stride() const { return stride_; }
    /// Returns the list; empty for a run.
    [[nodiscard]] std::span<const RmaExtent> list() const { return list_; }
    [[nodiscard]] std::uint64_t bytes() const;
    /// Returns whether all blocks are within a memory of `size` bytes. Any values are safe.
    [[nodiscard]] bool is_within(std::uint64_t size) const;

    /// Progress of a payload.
    struct BlockPosition {
        std::uint64_t block = 0;
        std::uint64_t bytes = 0;  // of the block, completed
    };
    /// Returns the rest of the block at `place`, which is not the end.
    [[nodiscard]] RmaExtent rest(const BlockPosition& place) const;
    void advance(BlockPosition& place, std::uint64_t bytes) const;
    /// Returns the bytes of the next `blocks` blocks, but no more than `most`.
    [[nodiscard]] std::uint64_t bytes_of_next(BlockPosition place, std::size_t blocks,
                                              std::uint64_t most) const;

    // Copies in a `memory` that contains all blocks:

    /// Copies the next bytes of a payload into their blocks. `payload` has no more bytes than are
    /// left.
    void scatter(MutableBytes memory, BlockPosition& place, Bytes payload) const;
    /// Finds the next bytes of a payload, about `most`: fills `into` and returns the number of
    /// entries.
    std::size_t gather(Bytes memory, BlockPosition place, std::size_t most,
                       std::span<Bytes> into) const;

   private:
    [[nodiscard]] RmaExtent at(std::uint64_t index) const {
        if (!list_.empty()) return list_[index];
        return {.offset = first_.offset + index * stride_, .bytes = first_.bytes};
    }

    RmaExtent first_;
    std::uint64_t stride_ = 0;
    std::uint64_t count_ = 1;
    std::vector<RmaExtent> list_;
};

}  // namespace pccl::transport
