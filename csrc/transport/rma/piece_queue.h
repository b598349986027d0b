// Pieces that wait, first in, first out, in one block of memory: a deque allocates for every
// twenty.
#pragma once

#include <cstddef>
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
    void push(const sys::ProcessPiece& piece) { pieces_.push_back(piece); }
    /// The first `count`.
    void drop(std::size_t count) {
        first_ += count;
        if (first_ < pieces_.size() && first_ < kMostDropped) return;
        pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
    }
    void clear() { drop(size()); }

   private:
    static constexpr std::size_t kMostDropped = 16384;  // whose memory is still taken

    std::vector<sys::ProcessPiece> pieces_;
    std::size_t first_ = 0;  // of those that wait
};

}  // namespace pccl::transport
