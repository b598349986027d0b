// SPDX-License-Identifier: Apache-2.0

// Wire format of links over several paths.
//
// A channel's stream is cut into pieces with consecutive numbers. Each piece goes over one path,
// behind its header. The receiver confirms pieces over the same sockets by receipts: a path that is
// cut loses what its kernels hold, acknowledged or not. Until then the sender keeps a copy, for
// another path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "csrc/base/ids.h"

namespace pccl::transport::tcp {

using PieceNumber = std::uint64_t;  // the first piece of a stream has 0

/// Most bytes of a piece: 4 ms of a path of 0.25 Gb/s.
inline constexpr std::size_t kPieceBytes = 128 * kKiB;

/// Most bytes of unconfirmed pieces that a sender keeps before it makes another piece.
inline constexpr std::size_t kMostKept = 16 * kMiB;

struct PieceHeader {
    PieceNumber number = 0;
    std::uint32_t bytes = 0;  // 1 to kPieceBytes
    std::uint32_t reserved = 0;
};
static_assert(sizeof(PieceHeader) == 16);

/// Confirmation by the receiver.
struct Receipt {
    PieceNumber next = 0;  // all pieces before this one have arrived
};

/// First bytes of the watch of a path that joins its link later: the sender uses the path from then
/// on, in place of any earlier one of the same number.
struct PathBegin {
    static constexpr std::uint64_t kMagic = 0x6E49676542485450;
    std::uint64_t magic = kMagic;
};

/// A piece in the sender's memory.
class Piece {
   public:
    explicit Piece(std::size_t room)
        : bytes_(std::make_unique_for_overwrite<std::byte[]>(room)), room_(room) {}

    [[nodiscard]] std::byte* bytes() const { return bytes_.get(); }
    [[nodiscard]] std::size_t size() const { return header.bytes; }
    [[nodiscard]] std::size_t room() const { return room_; }

    PieceHeader header{};

   private:
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t room_;
};
using PiecePtr = std::shared_ptr<Piece>;

}  // namespace pccl::transport::tcp
