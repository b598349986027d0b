// SPDX-License-Identifier: Apache-2.0

// Arriving pieces of one socket.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <pccl/status.h>
#include "plugins/nccl/wire.h"

namespace pccl::nccl {

/// Receiving end of one socket. Headers, and the first bytes that come with them, are read into
/// memory of this; the other bytes go straight to their destination.
class RecvPath {
   public:
    /// Returns true while there is a piece, whose header() is known. Reads nothing else of it.
    Result<bool> find_piece(int socket, std::size_t piece_bytes);
    [[nodiscard]] const PieceHeader& header() const { return header_; }
    /// Returns the bytes of the piece that have been read, and those that have not.
    [[nodiscard]] std::size_t taken() const { return taken_; }
    [[nodiscard]] std::size_t left() const { return length_ - taken_; }
    /// Reads the next bytes of the piece into `into`, which has left() bytes; returns their number.
    Result<std::size_t> read(int socket, std::span<std::byte> into);
    /// Reads bytes of the piece that nobody needs; returns their number.
    Result<std::size_t> skip(int socket);
    /// Ends the piece, all bytes of which have been read.
    void end_piece() { has_piece_ = false; }

   private:
    std::size_t take_held(std::span<std::byte> into);

    std::array<std::byte, sizeof(PieceHeader) + kInlineBytes> held_{};
    std::size_t begin_ = 0;  // of the bytes in held_ that have been read too early
    std::size_t end_ = 0;
    PieceHeader header_{};
    bool has_piece_ = false;
    std::size_t length_ = 0;
    std::size_t taken_ = 0;
};

}  // namespace pccl::nccl
