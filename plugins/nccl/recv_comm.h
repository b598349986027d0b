// SPDX-License-Identifier: Apache-2.0

// Receiving end of a connection.
//
// A socket whose next piece belongs to a message without a receive is left alone, in the kernel's
// buffers, so that bytes are read once, into the caller's memory. After the loss of a path, a piece
// that comes again may be behind such a piece: then that one is kept in memory of this.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "plugins/nccl/paths.h"
#include "plugins/nccl/recv_path.h"
#include "plugins/nccl/request.h"

namespace pccl::nccl {

class RecvComm final : public Communicator {
   public:
    explicit RecvComm(Paths paths);
    /// Reports to the sender what has arrived, where it may not have found out.
    ~RecvComm() override;
    RecvComm(const RecvComm&) = delete;
    RecvComm& operator=(const RecvComm&) = delete;

    /// Starts to receive a message of at most `into.size()` bytes. Returns null while too many
    /// requests are in flight.
    Result<Request*> irecv(std::span<std::byte> into);
    Status progress() override;

   private:
    struct Message : Request {
        std::span<std::byte> into;
        bool is_known = false;          // bytes and has_piece are set
        std::size_t left = 0;           // pieces that have not arrived
        std::vector<bool> has_piece{};  // by piece
    };
    /// Bytes of a piece of a message without a receive.
    using Early = std::vector<std::byte>;
    using PieceKey = std::pair<std::uint32_t, std::uint64_t>;  // sequence, offset
    struct EarlyPiece {
        PieceHeader header;
        Early bytes;
    };
    struct Lane {
        RecvPath pieces;
        std::optional<Early> early{};  // takes the current piece
        Receipt receipt{};
        std::size_t receipt_sent = sizeof(Receipt);  // bytes of it; all: none is under way
    };

    enum class Place { kWanted, kNeedless, kEarly };
    [[nodiscard]] Place place_of(const PieceHeader& header);
    Status learn_size(Message& message, const PieceHeader& header);
    void complete(Message& message, const PieceHeader& header);
    /// Reads what a socket has; sets `has_moved` if it had anything.
    Status read_path(std::size_t path, bool& has_moved);
    /// Reads bytes of the socket's piece; returns false where there are none to read now.
    Result<bool> read_piece(std::size_t path);
    Result<std::size_t> read_bytes(std::size_t path, Place place);
    /// Takes a whole piece that was read into memory of this.
    Status place_early(const PieceHeader& header, Early bytes);
    Status take_early(std::uint32_t sequence);
    /// Reports to the sender what has arrived.
    void send_receipt();
    /// Ends a path that has failed; returns the error if the communicator ends with it.
    Status end_path(std::size_t path, const Status& fault);
    [[nodiscard]] bool has_receives() const { return first_ != messages_.end(); }
    void watch_for_stall(bool has_moved);

    Paths paths_;
    const std::size_t piece_bytes_;
    std::vector<Lane> lanes_;  // by path
    MessageRing<Message> messages_{*this};
    std::uint32_t first_ = 0;  // the first message that has not arrived whole
    bool takes_early_ = false;
    bool is_troubled_ = false;  // a path is lost, or the sender takes one for lost
    TimePoint moved_{};
    std::map<PieceKey, EarlyPiece> early_;
    std::size_t early_bytes_ = 0;
    Status status_;
};

}  // namespace pccl::nccl
