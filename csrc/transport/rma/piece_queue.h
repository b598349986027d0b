// SPDX-License-Identifier: Apache-2.0

// FIFO of pieces in one block of memory: a deque would allocate for every twenty.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "csrc/sys/process_memory.h"

namespace pccl::transport {

class PieceQueue {
   public:
    [[nodiscard]] std::size_t size() const { return pieces_.size() - first_; }
    [[nodiscard]] const sys::ProcessPiece& operator[](std::size_t index) const {
        return pieces_[first_ + index];
    }
    [[nodiscard]] sys::ProcessPiece& front() { return pieces_[first_]; }
    /// Appends `count` pieces, which the caller fills before any other call.
    [[nodiscard]] std::span<sys::ProcessPiece> grow(std::size_t count) {
        pieces_.resize(pieces_.size() + count);
        return std::span(pieces_).last(count);
    }
    /// Removes the first `count` pieces.
    void drop(std::size_t count) {
        first_ += count;
        if (first_ < size()) return;  // fewer pieces are moved than were dropped
        pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
    }
    void clear() { drop(size()); }

   private:
    std::vector<sys::ProcessPiece> pieces_;
    std::size_t first_ = 0;  // index of the front piece
};

}  // namespace pccl::transport
