// Connections that have ended for this session, by the numbers that both ends know.
//
// The peer may not have received it: the news go by the streams of the connection, which the hello
// of the next one may overtake. So that one tells it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "csrc/p2p/handshake.h"
#include "csrc/p2p/session_id.h"

namespace pccl::p2p {

/// Of the last incarnation of each peer, the last ones. Not safe from several threads.
class PCCL_API EndedConnections {
   public:
    static constexpr std::size_t kMost = Hello::kMostEnded;

    /// Again: nothing.
    void add(const SessionId& peer, std::uint64_t number);
    /// All of a peer that is not known any more.
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
