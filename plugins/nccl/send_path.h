// SPDX-License-Identifier: Apache-2.0

// Pieces on their way over one socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <pccl/status.h>
#include "plugins/nccl/wire.h"

namespace pccl::nccl {

/// Part of a message that goes over one socket: bytes of the caller's memory, or a copy of them.
class Piece {
   public:
    Piece(const PieceHeader& header, std::span<const std::byte> bytes)
        : header_(header), bytes_(bytes) {}

    [[nodiscard]] const PieceHeader& header() const { return header_; }
    [[nodiscard]] std::span<const std::byte> bytes() const {
        return copy_ == nullptr ? bytes_ : std::span<const std::byte>(copy_->bytes);
    }
    /// Copies the bytes, so that the caller's memory is free. Copies of this share them.
    void keep();
    [[nodiscard]] bool is_kept() const { return copy_ != nullptr; }
    /// Marks a kept piece as arrived, whichever path has carried it.
    void set_arrived() const {
        if (is_kept()) copy_->has_arrived = true;
    }
    [[nodiscard]] bool has_arrived() const { return is_kept() && copy_->has_arrived; }
    /// Returns whether the message has ended for its caller and may not have arrived.
    [[nodiscard]] bool is_owed() const {
        return is_kept() && !has_arrived() && header_.message_bytes <= kInlineBytes;
    }

   private:
    struct Copy {
        std::vector<std::byte> bytes;
        bool has_arrived = false;
    };
    PieceHeader header_;
    std::span<const std::byte> bytes_;  // once kept, unused
    std::shared_ptr<Copy> copy_;
};

/// Sending end of one socket: the piece that it takes, and those that the peer's host may not have.
class SendPath {
   public:
    /// If `tracks`, pieces stay here until the peer's host has acknowledged them.
    explicit SendPath(bool tracks) : tracks_(tracks) {}

    [[nodiscard]] bool is_idle() const { return !current_.has_value(); }
    void begin(Piece piece) {
        current_ = std::move(piece);
        sent_ = 0;
    }
    /// Writes as much of the current piece as the socket takes; returns the bytes. With the last
    /// one the piece moves to the end of those that wait, and `ended` is set.
    Result<std::size_t> write(int socket, std::optional<Piece>& ended);
    /// Takes the pieces of which the peer's host has acknowledged all bytes.
    std::vector<Piece> take_acknowledged(int socket);
    /// Returns copies of the pieces that may not have arrived, the oldest first.
    [[nodiscard]] std::vector<Piece> unconfirmed() const;
    /// Makes the current piece independent of the caller's memory.
    void keep_current();
    [[nodiscard]] bool is_current_kept() const { return current_ && current_->is_kept(); }
    /// Marks kept pieces of messages before this one as arrived.
    void set_arrived_before(std::uint32_t end);
    /// Returns whether it has a piece that is_owed().
    [[nodiscard]] bool owes_any() const;
    /// Returns whether the socket may take another piece now.
    [[nodiscard]] bool has_room() const { return is_idle() && waiting_.size() < kMostWaiting; }
    /// Returns whether the socket has bytes that have not arrived.
    [[nodiscard]] bool is_busy() const { return current_.has_value() || !waiting_.empty(); }

   private:
    static constexpr std::size_t kMostWaiting = 1024;
    struct Waiting {
        Piece piece;
        std::uint64_t end = 0;  // in the bytes of the socket
    };
    void end_piece(std::optional<Piece>& ended);

    const bool tracks_;
    std::optional<Piece> current_;
    std::size_t sent_ = 0;       // of the current piece and its header
    std::uint64_t written_ = 0;  // bytes of all pieces
    std::deque<Waiting> waiting_;
};

}  // namespace pccl::nccl
