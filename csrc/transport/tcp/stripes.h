// SPDX-License-Identifier: Apache-2.0

// One byte stream over several sockets, in blocks.
//
// Each block of block_bytes() goes to the socket that is least loaded when the block begins, behind
// its number, so that a path with twice the throughput gets twice as many. The receiver takes
// blocks by their numbers: a socket whose next block is not due is left alone, in the kernel's
// buffers. So bytes are read once, straight into their destination, and an in-order reader always
// finds the next block at the front of a socket. Within a block the socket carries only the block's
// bytes, and a stream over one socket has no numbers at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/doorbell.h"

namespace pccl::transport::tcp {

/// Number that precedes each block of a stream over several sockets. The first is 0.
using BlockNumber = std::uint64_t;

/// Sockets of one channel.
class Stripes {
   public:
    Stripes(std::vector<WatchedSocket> sockets, std::size_t block_bytes,
            std::chrono::milliseconds peer_timeout)
        : sockets_(std::move(sockets)), block_(block_bytes), peer_timeout_(peer_timeout) {}

    /// Ends the stream. If the reason is a lost rank, its host may be cut off, and so may this
    /// link's peer.
    void end(const Status& reason) const {
        for (const WatchedSocket& socket : sockets_) {
            if (reason.code() == StatusCode::kPeerLost)
                sys::abandon(socket.fd(), peer_timeout_);
            else
                sys::shut_down(socket.fd());
        }
    }
    [[nodiscard]] std::size_t count() const { return sockets_.size(); }
    [[nodiscard]] int socket(std::size_t index) const { return sockets_[index].fd(); }
    [[nodiscard]] std::size_t block_bytes() const { return block_; }
    [[nodiscard]] bool is_numbered() const { return count() > 1; }

   private:
    std::vector<WatchedSocket> sockets_;
    std::size_t block_;
    std::chrono::milliseconds peer_timeout_;
};

}  // namespace pccl::transport::tcp
