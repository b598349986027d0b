// SPDX-License-Identifier: Apache-2.0

// Receiving end of one channel over several paths: pieces in the order of their numbers, each once.
//
// The piece that is due is read straight into its destination. Pieces that come before their turn
// are read into memory of this, so that the one that is due, or comes again, is not behind them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/transport/doorbell.h"
#include "csrc/transport/link.h"
#include "csrc/transport/tcp/piece.h"

namespace pccl::transport::tcp {

class PieceReader {
   public:
    /// Reads the next bytes of the stream that have arrived. Returns a fault, after all bytes that
    /// arrived, once all sockets have ended.
    Result<std::size_t> read(MutableBytes into);
    /// Reads from `socket` from now on, in place of an earlier one of that index.
    void use(std::size_t index, WatchedSocket socket);
    /// Returns whether all bytes have been read and none can come. Makes system calls.
    [[nodiscard]] bool is_drained() const;
    /// Ends the stream, as Stripes::end() does.
    void end(const Status& reason, std::chrono::milliseconds peer_timeout) const;

   private:
    using Memory = std::vector<std::byte>;
    struct LaneState {
        PieceHeader header{};
        std::size_t header_bytes = 0;
        std::size_t taken = 0;          // bytes of the piece
        std::optional<Memory> early{};  // takes the piece
        Receipt receipt{};
        std::size_t receipt_left = 0;  // bytes that the socket has not taken
        Status fault{};
    };
    struct Lane {
        std::optional<WatchedSocket> socket{};
        LaneState state{};

        [[nodiscard]] bool is_open() const { return socket.has_value() && state.fault.is_ok(); }
        [[nodiscard]] bool has_piece() const { return state.header_bytes == sizeof state.header; }
        [[nodiscard]] std::size_t left() const { return state.header.bytes - state.taken; }
    };

    /// Copies from pieces that came early.
    std::size_t take_early(MutableBytes into);
    /// Reads of the piece that is due, from any socket that has bytes of it.
    std::size_t read_due(MutableBytes into);
    std::size_t read_due(Lane& lane, MutableBytes into);
    /// Reads pieces that are not due, and drops those that have arrived already; returns whether
    /// there were any bytes.
    bool read_others();
    bool read_other(Lane& lane);
    /// Returns whether the socket's next piece is known now.
    bool find_piece(Lane& lane);
    std::size_t receive(Lane& lane, MutableBytes into);
    std::size_t skip(Lane& lane, std::size_t bytes);
    void advance(std::size_t bytes, std::size_t piece_bytes);
    void end(Lane& lane, const Status& fault);
    [[nodiscard]] Status fault() const;
    void confirm_if_due(bool is_idle);
    void send_receipt();
    bool send_receipt(Lane& lane) const;

    std::vector<Lane> lanes_;
    std::size_t latest_ = 0;  // socket that had bytes last
    PieceNumber next_ = 0;    // the piece that is due
    std::size_t done_ = 0;    // bytes of it that have been read
    std::map<PieceNumber, Memory> early_;
    std::size_t early_bytes_ = 0;
    std::vector<Memory> stock_;
    PieceNumber confirmed_ = 0;
    std::size_t unconfirmed_ = 0;  // bytes
    bool has_needless_ = false;    // pieces come twice: the sender needs a receipt
    TimePoint confirmed_at_{};
};

}  // namespace pccl::transport::tcp
