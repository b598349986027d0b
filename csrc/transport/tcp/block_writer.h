// SPDX-License-Identifier: Apache-2.0

// Choice of the socket for the next bytes of a stream.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "csrc/transport/link.h"
#include "csrc/transport/tcp/socket_loads.h"
#include "csrc/transport/tcp/stripes.h"

namespace pccl::transport::tcp {

/// Sending end of one channel:
///
///     if (!writer.choose()) ... no socket has room
///     do {
///         ... send number(), then the next left() bytes to socket()
///     } while (nothing was taken && writer.pass_on());
class BlockWriter {
   public:
    explicit BlockWriter(Stripes stripes);

    /// Sorts the sockets by the order in which to try them, at the start of a block. Returns false
    /// when none has room for the block: the kernel then reports the first one that has.
    [[nodiscard]] bool choose() { return !may_choose() || has_candidates() || others_have_room(); }
    /// Returns whether another socket may take a block that socket() did not begin.
    [[nodiscard]] bool pass_on();

    [[nodiscard]] int socket() const { return stripes_.socket(order_[candidate_]); }
    /// Returns the bytes that precede the next byte of the stream; empty within a block.
    [[nodiscard]] Bytes number() const {
        return std::as_bytes(std::span(&number_, 1)).last(number_left_);
    }
    /// Returns how many bytes of the stream go to socket() next.
    [[nodiscard]] std::size_t left() const { return left_; }
    /// Counts the bytes that socket() took of number() and left(); returns how many of them belong
    /// to the stream.
    std::size_t advance(std::size_t taken);
    [[nodiscard]] const Stripes& stripes() const { return stripes_; }

    /// Returns the bytes that the kernel takes even if the receiver never reads.
    [[nodiscard]] std::size_t capacity() const;

   private:
    /// Returns whether the block may go to another socket: a number that is begun binds its block.
    [[nodiscard]] bool may_choose() const { return number_left_ == sizeof number_; }
    /// Sorts the sockets; returns whether any has few enough bytes waiting.
    bool has_candidates();
    /// Checks the sockets that had too many bytes. If it returns false, the kernel reports when
    /// they have room, like the sockets that were tried in vain.
    bool others_have_room();

    Stripes stripes_;
    SocketLoads loads_;
    std::vector<std::size_t> order_;  // sockets, by load at the start of this block
    std::size_t candidates_ = 1;      // number of sockets at the front of order_ with few enough
                                      // bytes
    std::size_t candidate_ = 0;       // index in order_
    BlockNumber number_ = 0;
    std::size_t number_left_;
    std::size_t left_;
};

}  // namespace pccl::transport::tcp
