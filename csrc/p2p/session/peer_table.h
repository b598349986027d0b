// SPDX-License-Identifier: Apache-2.0

// Table of the peers of a session: their incarnations, the connections to them, and the matchers of
// their messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pccl/memory.h>
#include <pccl/status.h>
#include "csrc/p2p/connection/connection.h"
#include "csrc/p2p/connection/handshake.h"
#include "csrc/p2p/messages/matcher.h"
#include "csrc/p2p/session/peer_incarnations.h"

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

[[nodiscard]] inline bool is_there(const Connection& connection) {
    return connection.is_whole() && connection.is_usable();
}

/// Not thread-safe: the session's lock guards it.
class PeerTable {
   public:
    using Connections = std::vector<std::shared_ptr<Connection>>;

    [[nodiscard]] PeerIncarnations& incarnations() { return incarnations_; }

    void add(const std::shared_ptr<Connection>& connection);
    /// Adds a connection that a peer has made.
    void add_arrival(const std::shared_ptr<Connection>& connection) {
        arrived_.push_back({connection});
    }
    [[nodiscard]] Connections all() const;
    [[nodiscard]] Connections all_to(const std::string& peer) const;
    /// Returns a usable connection, or null. An error in `reachable` requests a fallback
    /// connection, unless the direct one goes by messages.
    [[nodiscard]] std::shared_ptr<Connection> find_for(const std::string& peer,
                                                       const Status& reachable) const;
    /// Returns the info of the current incarnation. Returns kInvalidArgument for an unknown peer,
    /// kUnavailable where `incarnation` is not null and another one.
    [[nodiscard]] Result<const ConnectionInfo*> info_of(const std::string& peer,
                                                        const SessionId* incarnation) const;
    /// Returns kPeerLost where that known peer cannot be called.
    [[nodiscard]] Status check_callable(const ConnectionInfo& peer) const;
    /// Returns the next peer that has connected, or the peer of that name if it is connected. The
    /// peer counts as reported from then on.
    std::optional<SessionId> take_caller(const std::string& peer);

    /// Removes connections that this session has ended.
    void remove(const Connections& gone);
    /// Removes and returns all connections to other incarnations of the session than `incarnation`.
    [[nodiscard]] Connections take_others(const SessionId& incarnation);
    /// Removes and returns the lost connections.
    [[nodiscard]] Connections take_lost();
    /// Removes the lost connections that peers have made, and appends them to `lost`.
    void take_lost_arrivals(Connections& lost);
    void clear() {
        connections_.clear();
        arrived_.clear();
    }

    /// Returns the connections to an incarnation of a peer that have ended here.
    [[nodiscard]] std::vector<std::uint64_t> ended_with(const SessionId& peer);
    /// Marks the connections that have ended for the caller.
    void leave_ended(const Hello& hello);

    /// Returns the entry of the matcher for that incarnation of a peer, which may be empty.
    std::weak_ptr<Matcher>& matcher_of(const SessionId& peer);

   private:
    /// Connection that a peer has made.
    struct IncomingConnection {
        std::shared_ptr<Connection> connection;
        bool is_reported = false;  // by take_caller()

        [[nodiscard]] bool is_there() const { return p2p::is_there(*connection); }
        [[nodiscard]] const SessionId& who() const { return connection->peer().id; }
    };

    /// Returns the first usable one, or null.
    [[nodiscard]] std::shared_ptr<Connection> find(const std::string& peer, bool is_fallback) const;
    /// Returns a connection that a peer has made and that is not reported yet; null while there is
    /// none.
    [[nodiscard]] std::shared_ptr<Connection> first_unreported() const;
    [[nodiscard]] std::shared_ptr<Connection> first_whole(const std::string& peer) const;
    /// Puts the peers of removed connections to rest.
    void rest_peers_of(const Connections& gone);

    PeerIncarnations incarnations_;
    std::multimap<std::string, std::shared_ptr<Connection>> connections_;  // by name of the peer
    EndedConnections ended_;  // connections that are no longer in connections_
    std::list<IncomingConnection> arrived_;
    /// Matchers by incarnation of a peer, while there are connections to it.
    std::map<std::pair<std::string, std::uint64_t>, std::weak_ptr<Matcher>> matchers_;
};

}  // namespace pccl::p2p
