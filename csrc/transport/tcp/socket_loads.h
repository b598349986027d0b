// SPDX-License-Identifier: Apache-2.0

// Loads of parallel sockets: what each sends, and how much may wait in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <pccl/export.h>

namespace pccl::transport::tcp {

class PCCL_API SocketLoads {
   public:
    /// Takes the descriptors, which stay open; negative ones count as idle.
    explicit SocketLoads(std::vector<int> sockets);

    /// Measures the bytes that wait in each socket, and now and then the shares of the sockets.
    void measure();
    /// Returns the relative delay of a block on a socket, when last measured; 1: it should get no
    /// other.
    [[nodiscard]] double load(std::size_t socket) const { return states_[socket].load(); }
    /// Counts bytes that a socket took.
    void add(std::size_t socket, std::size_t bytes) { states_[socket].given += bytes; }
    /// Stops measuring a socket, before its descriptor is closed.
    void forget(std::size_t socket) { sockets_[socket] = -1; }

   private:
    void share_out();

    /// State of a socket, in bytes.
    struct SocketState {
        std::size_t given = 0;   // since the last share_out(), plus the unsent bytes at that time
        std::size_t unsent = 0;  // in the send queue, when last measured
        std::size_t limit = 0;   // of unsent: in proportion to the throughput of its path
        [[nodiscard]] std::size_t gone() const { return given - std::min(unsent, given); }
        [[nodiscard]] double load() const {
            return static_cast<double>(unsent) / static_cast<double>(limit);
        }
    };

    std::vector<int> sockets_;
    std::vector<SocketState> states_;  // by socket
};

/// Bytes that may wait in any socket, however slow its path is.
inline constexpr std::size_t kLeastUnsent = std::size_t{512} * 1024;

}  // namespace pccl::transport::tcp
