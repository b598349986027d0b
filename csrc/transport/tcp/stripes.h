// One byte stream over several sockets: byte b travels on socket (b / block) % sockets.
//
// Both ends compute the same, so the sockets carry nothing but the bytes. A message that is shorter
// than a block costs one system call; a long one uses all sockets, and so several connections'
// windows, queues and cores of the kernel.
#pragma once

#include <chrono>
#include <utility>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/watched_socket.h"

namespace pccl::transport::tcp {

/// The sockets of one channel, and how far its stream has come on them.
class Stripes {
   public:
    Stripes(std::vector<WatchedSocket> sockets, std::size_t block_bytes,
            std::chrono::milliseconds peer_timeout)
        : sockets_(std::move(sockets)),
          block_(block_bytes),
          peer_timeout_(peer_timeout),
          left_(block_bytes) {}

    /// Carries the next left() bytes of the stream.
    [[nodiscard]] int current() const { return sockets_[index_].fd(); }
    [[nodiscard]] std::size_t left() const { return left_; }
    /// At most left().
    void advance(std::size_t bytes) {
        left_ -= bytes;
        if (left_ > 0) return;
        left_ = block_;
        index_ = index_ + 1 < sockets_.size() ? index_ + 1 : 0;
    }
    /// Ends the stream. Where a rank is lost its host may be cut off, and so this link's peer.
    void end(const Status& reason) const {
        for (const WatchedSocket& socket : sockets_) {
            if (reason.code() == StatusCode::kPeerLost)
                sys::abandon(socket.fd(), peer_timeout_);
            else
                sys::shut_down(socket.fd());
        }
    }
    [[nodiscard]] const std::vector<WatchedSocket>& sockets() const { return sockets_; }
    [[nodiscard]] std::size_t block_bytes() const { return block_; }

   private:
    std::vector<WatchedSocket> sockets_;
    std::size_t block_;
    std::chrono::milliseconds peer_timeout_;
    std::size_t index_ = 0;
    std::size_t left_;
};

}  // namespace pccl::transport::tcp
