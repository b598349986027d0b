// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/sent_pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/assert.h"

namespace pccl::transport::tcp {
namespace {

// Messages of up to this many bytes get memory of their size.
constexpr std::size_t kSmall = 4 * kKiB;
constexpr std::size_t kMostSpare = 64;
constexpr std::size_t kPiecesOfSocket = 2;
constexpr std::size_t kLeastPiece = 16 * kKiB;
constexpr std::size_t kGrain = 4 * kKiB;

}  // namespace

void SentPieces::divide(std::span<const Bytes> parts, std::size_t sockets) {
    std::size_t bytes = 0;
    for (const Bytes& part : parts) bytes += part.size();
    // A round of a schedule ends with its last piece: all sockets take part in it.
    const std::size_t share = bytes / (kPiecesOfSocket * std::max<std::size_t>(sockets, 1));
    longest_ = std::clamp(share / kGrain * kGrain, kLeastPiece, kPieceBytes);
}

std::size_t SentPieces::append(std::span<const Bytes> parts, std::size_t begin, bool ends) {
    if (open_ == nullptr && kept_ >= most_) return 0;
    std::size_t left = 0;
    for (const Bytes& part : parts) left += part.size();
    left -= begin;
    if (left == 0) return 0;
    if (open_ == nullptr) open_ = make_piece(ends ? std::min(left, longest_) : kPieceBytes);
    const std::size_t room = std::max(std::min(longest_, open_->room()), open_->size());
    std::size_t taken = 0;
    for (const Bytes& part : parts) {
        const std::size_t skipped = std::min(begin, part.size());
        begin -= skipped;
        const std::size_t count = std::min(room - open_->size(), part.size() - skipped);
        if (count > 0) std::memcpy(open_->bytes() + open_->size(), part.data() + skipped, count);
        open_->header.bytes += static_cast<std::uint32_t>(count);
        taken += count;
        if (open_->size() == room) break;
    }
    if (open_->size() == room || (ends && taken == left)) end_piece();
    return taken;
}

void SentPieces::end_piece() {
    if (open_ == nullptr) return;
    open_->header.number = end();
    kept_ += open_->size();
    pieces_.push_back(std::exchange(open_, nullptr));
}

PiecePtr SentPieces::make_piece(std::size_t bytes) {
    if (bytes <= kSmall) return std::make_shared<Piece>(bytes);
    if (stock_.empty()) return std::make_shared<Piece>(kPieceBytes);
    PiecePtr piece = std::move(stock_.back());
    stock_.pop_back();
    piece->header = {};
    return piece;
}

void SentPieces::confirm(PieceNumber next) {
    PCCL_ASSERT(next <= end());
    for (; first_ < next; ++first_) {
        PiecePtr piece = std::move(pieces_.front());
        pieces_.pop_front();
        kept_ -= piece->size();
        // A silent path may still be about to send it.
        const bool is_free = piece.use_count() == 1 && piece->room() == kPieceBytes;
        if (is_free && stock_.size() < kMostSpare) stock_.push_back(std::move(piece));
    }
}

}  // namespace pccl::transport::tcp
