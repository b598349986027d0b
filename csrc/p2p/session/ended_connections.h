// SPDX-License-Identifier: Apache-2.0

// Connections that this session has ended, by the numbers that both ends share.
//
// The notice of the end travels on the streams of the connection, and the hello of the next
// connection may overtake it. That hello therefore lists the ended connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <pccl/memory.h>
#include "csrc/p2p/connection/handshake.h"

namespace pccl::p2p {

/// Most recent ended connections to the last incarnation of each peer. Not thread-safe.
class PCCL_API EndedConnections {
   public:
    static constexpr std::size_t kMost = Hello::kMostEnded;

    /// Adds a connection. Does nothing for one that is already listed.
    void add(const SessionId& peer, std::uint64_t number);
    /// Removes all entries of a peer.
    void forget(const std::string& peer) { ended_.erase(peer); }
    [[nodiscard]] std::vector<std::uint64_t> with(const SessionId& peer) const;

   private:
    struct Ended {
        std::uint64_t incarnation = 0;
        std::vector<std::uint64_t> numbers{};
    };

    std::map<std::string, Ended> ended_;  // by name
};

}  // namespace pccl::p2p
