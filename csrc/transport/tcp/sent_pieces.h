// SPDX-License-Identifier: Apache-2.0

// Pieces of a stream that the receiver has not confirmed.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "csrc/transport/link.h"
#include "csrc/transport/tcp/piece.h"

namespace pccl::transport::tcp {

class SentPieces {
   public:
    /// `most`: bytes to keep at a time.
    explicit SentPieces(std::size_t most) : most_(most) {}

    /// Sets the length of the next pieces, for a call that sends `parts` over so many sockets.
    void divide(std::span<const Bytes> parts, std::size_t sockets);
    /// Copies `parts`, from byte `begin` on, into one piece; returns the number of bytes. `ends`:
    /// their last piece is ready to be sent; otherwise a later call may fill it up.
    std::size_t append(std::span<const Bytes> parts, std::size_t begin, bool ends);
    /// Makes the last piece ready.
    void end_piece();
    /// Returns whether receipts are needed soon.
    [[nodiscard]] bool is_crowded() const { return kept_ >= most_ / 4; }

    /// Returns the numbers of the pieces that are ready: from begin() to end() - 1.
    [[nodiscard]] PieceNumber begin() const { return first_; }
    [[nodiscard]] PieceNumber end() const { return first_ + pieces_.size(); }
    [[nodiscard]] const PiecePtr& operator[](PieceNumber number) const {
        return pieces_[number - first_];
    }
    /// Drops the pieces before `next`, which is at most end().
    void confirm(PieceNumber next);

   private:
    PiecePtr make_piece(std::size_t bytes);

    const std::size_t most_;
    std::size_t longest_ = kPieceBytes;  // piece of the present call
    std::deque<PiecePtr> pieces_;
    PieceNumber first_ = 0;
    std::size_t kept_ = 0;  // bytes of pieces_
    PiecePtr open_;         // takes further bytes
    std::vector<PiecePtr> stock_;
};

}  // namespace pccl::transport::tcp
