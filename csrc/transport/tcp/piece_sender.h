// SPDX-License-Identifier: Apache-2.0

// Sending end of one channel over several paths: each piece goes to the socket that will be through
// with it first, and again over another one where its path is cut.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/doorbell.h"
#include "csrc/transport/link.h"
#include "csrc/transport/tcp/path_health.h"
#include "csrc/transport/tcp/piece.h"
#include "csrc/transport/tcp/sent_pieces.h"

namespace pccl::transport::tcp {

class PieceSender {
   public:
    /// `most`: bytes to keep until they are confirmed.
    PieceSender(std::size_t most, std::chrono::milliseconds peer_timeout)
        : pieces_(most), peer_timeout_(peer_timeout) {}

    /// Takes the front of `parts` and sends as much as the sockets take; returns the bytes taken.
    /// `flush`: also sends a last piece that is not full. Errors: all sockets have ended.
    Result<std::size_t> send(std::span<const Bytes> parts, Flush flush);
    /// Sends as much as the sockets take.
    Status pump();
    /// Reads the receipts that have arrived.
    void read_receipts();
    /// Makes the last piece ready, and sends; returns whether the kernel has taken everything.
    Result<bool> flush();

    /// Sends over `socket` from now on, in place of an earlier one of that index, whose
    /// unconfirmed pieces go over the others.
    void use(std::size_t index, WatchedSocket socket);
    /// Lets other sockets take the pieces of this one while it is silent.
    void avoid(std::size_t index, bool is_silent);
    /// Returns whether bytes wait that the kernel has not taken.
    [[nodiscard]] bool has_rest();
    /// Returns whether the peer's host has not confirmed all that sockets have taken, except
    /// silent ones.
    [[nodiscard]] bool has_in_flight() const;
    /// Ends the stream after the bytes that the sockets have.
    void end_stream() const;
    /// Returns the verdict about a socket; makes system calls.
    PathVerdict check(std::size_t index, TimePoint now, bool others_answer);
    /// Returns whether the peer's host answers over a socket.
    [[nodiscard]] bool answers(std::size_t index, TimePoint now) const {
        return lanes_[index].is_open() && lanes_[index].state.health.answers(now);
    }
    /// Returns how a socket has ended; ok: it has not.
    [[nodiscard]] const Status& fault(std::size_t index) const { return lanes_[index].state.fault; }
    [[nodiscard]] std::size_t count() const { return lanes_.size(); }
    /// Returns -1 where there is no socket.
    [[nodiscard]] int socket(std::size_t index) const;

   private:
    struct LaneState {
        explicit LaneState(std::chrono::milliseconds peer_timeout) : health(peer_timeout) {}

        Status fault{};
        bool is_silent = false;
        PiecePtr current{};               // is being sent
        std::size_t sent = 0;             // bytes of it, with its header
        std::deque<PieceNumber> given{};  // that it began, and that are not confirmed
        PathHealth health;
        Receipt receipt{};
        std::size_t receipt_bytes = 0;  // that have arrived
        double rate = 0;                // bytes a second; 0: unknown
        std::size_t limit = 0;          // of bytes that wait in the socket; 0: the kernel's
        TimePoint rated{};
        double seconds = 0;  // until it would have sent another piece, when last compared
    };
    struct Lane {
        std::optional<WatchedSocket> socket{};
        LaneState state;

        [[nodiscard]] bool is_open() const { return socket.has_value() && state.fault.is_ok(); }
    };

    [[nodiscard]] bool has_next();
    /// Returns whether a socket takes the next piece now.
    bool has_room();
    [[nodiscard]] PieceNumber next() const { return again_.empty() ? unsent_ : again_.front(); }
    void take_next();
    /// Gives the next piece to a socket; false: none takes any.
    bool give_next();
    /// Returns the indices of sockets that could begin a piece, the best first.
    std::span<const std::size_t> candidates();
    [[nodiscard]] double seconds_until_sent(const Lane& lane) const;
    /// Writes as much of the current piece as the socket takes; returns the bytes.
    std::size_t write(Lane& lane);
    void end(Lane& lane, const Status& fault);
    void pass_on(Lane& lane);
    void read_receipts(Lane& lane);
    void confirm(PieceNumber next);
    void measure(Lane& lane, TimePoint now);
    [[nodiscard]] bool has_other(const Lane& lane) const;

    SentPieces pieces_;
    const std::chrono::milliseconds peer_timeout_;
    PieceNumber unsent_ = 0;         // the first piece that no socket has begun
    std::deque<PieceNumber> again_;  // pieces of sockets that are silent or have ended
    std::vector<Lane> lanes_;
    std::vector<std::size_t> order_;  // of candidates(), kept for its memory
    std::size_t turn_ = 0;            // who comes first among equals
};

}  // namespace pccl::transport::tcp
