// The blocks of one memory that a request moves, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/transport/link.h"

namespace pccl::transport {

/// Bytes of a memory; the entry of a list on the wire.
struct RmaExtent {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};
static_assert(sizeof(RmaExtent) == 16 && std::is_trivially_copyable_v<RmaExtent>);

/// A run of blocks of one length, or a list. Of several blocks none is empty.
class PCCL_API RmaBlocks {
   public:
    static constexpr std::size_t kMostListed = 128;

    RmaBlocks() = default;
    RmaBlocks(RmaExtent one) : first_(one) {}  // NOLINT: implicit by design
    /// Those behind the first lie `stride` apart. All have together what 64 bits count.
    RmaBlocks(RmaExtent first, std::uint64_t stride, std::uint64_t count)
        : first_(first), stride_(stride), count_(count) {}
    /// Likewise. Two blocks at least.
    explicit RmaBlocks(std::vector<RmaExtent> list)
        : first_(list.front()), count_(list.size()), list_(std::move(list)) {}

    [[nodiscard]] std::uint64_t count() const { return count_; }
    [[nodiscard]] const RmaExtent& first() const { return first_; }
    [[nodiscard]] std::uint64_t stride() const { return stride_; }
    /// None of a run.
    [[nodiscard]] std::span<const RmaExtent> list() const { return list_; }
    [[nodiscard]] std::uint64_t bytes() const;
    /// Of a memory of so many bytes. Any values are safe.
    [[nodiscard]] bool is_within(std::uint64_t size) const;

    /// How far a payload has come.
    struct BlockPosition {
        std::uint64_t block = 0;
        std::uint64_t bytes = 0;  // of it that are over
    };
    /// What is left of the block at `place`, which is not the end.
    [[nodiscard]] RmaExtent rest(const BlockPosition& place) const;
    void advance(BlockPosition& place, std::uint64_t bytes) const;
    /// Bytes of the next blocks, of so many at most, and no more than `most`.
    [[nodiscard]] std::uint64_t bytes_of_next(BlockPosition place, std::size_t blocks,
                                              std::uint64_t most) const;

    // Of a `memory` that they are within:

    /// Puts the next bytes of a payload, no more than are left, where they belong.
    void scatter(MutableBytes memory, BlockPosition& place, Bytes payload) const;
    /// Where the next bytes of a payload are, about `most` of them: fills `into` and returns how
    /// many.
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
