// SPDX-License-Identifier: Apache-2.0

// Sending end of a connection.
//
// Messages are cut into pieces, and each piece goes over the least loaded path. Over several paths
// a message ends when the peer's kernel has acknowledged all its bytes, because until then another
// path may have to carry them. Over one path it ends when the kernel has taken them.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/tcp/path_health.h"
#include "csrc/transport/tcp/socket_loads.h"
#include "plugins/nccl/paths.h"
#include "plugins/nccl/request.h"
#include "plugins/nccl/send_path.h"

namespace pccl::nccl {

using transport::tcp::PathHealth;
using transport::tcp::PathVerdict;

class SendComm final : public Communicator {
   public:
    SendComm(Paths paths, std::chrono::milliseconds peer_timeout);

    /// Starts to send `bytes`, which stay unchanged until the request has ended. Returns null while
    /// too many requests are in flight.
    Result<Request*> isend(std::span<const std::byte> bytes);
    Status progress() override;
    /// Ends the connection: no request makes progress any more. Waits until the peer's kernel has
    /// all messages that test() has reported, as long as a host may be silent; a path that is lost
    /// meanwhile costs none of them. Logs those that are lost.
    void finish();

   private:
    struct Message : Request {
        std::span<const std::byte> data;
        std::size_t given = 0;        // pieces that a path has taken
        std::size_t left = 0;         // pieces that have not ended
        std::vector<bool> has_ended;  // by piece; empty over one path
    };

    [[nodiscard]] bool is_tracked() const { return paths_.count() > 1; }
    [[nodiscard]] std::size_t pieces_in(std::size_t bytes) const {
        return pieces_of(bytes, piece_bytes_);
    }
    Piece piece_of(const Message& message, std::size_t index) const;
    /// Returns whether the bytes of a piece are still the caller's message, or a copy of one.
    bool is_needed(const Piece& piece);
    void end_piece(const Piece& piece);
    void confirm(const Piece& piece);

    bool collect_acknowledged();
    Result<bool> write_current();
    Result<bool> start_pieces();
    /// Returns the next piece to send, if there is one.
    std::optional<Piece> next_piece();
    /// Returns the path that should take the next piece.
    std::optional<std::size_t> best_path();
    /// Returns whether the socket took bytes.
    Result<bool> write(std::size_t path);
    Status lose(std::size_t path, const Status& why);
    Status check_paths();
    Status check_path(std::size_t path, TimePoint now);
    /// Reads the receiver's receipts; returns how the path has ended, if it has.
    Status read_receipt(std::size_t path);
    /// Does so on all paths from time to time: unread receipts would fill the sockets.
    Status read_receipts();
    /// Ends all messages before this one.
    void end_messages(std::uint32_t end);
    /// Returns whether a message that has ended for its caller may not have arrived.
    [[nodiscard]] bool owes_any() const;
    /// Lets other paths carry what a silent path may not have carried.
    void pass_on(std::size_t path);
    [[nodiscard]] bool has_other(std::size_t path) const;

    struct Lane {
        SendPath pieces;
        PathHealth health;
        bool is_passed_on = false;  // others carry its pieces, too
        Receipt receipt{};
        std::size_t receipt_bytes = 0;  // that have arrived
        std::size_t setup_bytes = 0;    // of the set-up, that come before the first receipt
    };

    Paths paths_;
    const std::chrono::milliseconds peer_timeout_;
    const std::size_t piece_bytes_;
    std::vector<Lane> lanes_;  // by path
    transport::tcp::SocketLoads loads_;
    MessageRing<Message> messages_{*this};
    std::uint32_t unsent_ = 0;  // the first message of which pieces are left to be given
    std::deque<Piece> again_;   // pieces of lost paths
    TimePoint receipts_read_{};
    bool is_finishing_ = false;  // the callers' memory is not read any more
    Status status_;
};

}  // namespace pccl::nccl
