// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/session/peer_table.h"

#include <algorithm>

#include "csrc/base/text/text.h"

namespace pccl::p2p {

void EndedConnections::add(const SessionId& peer, std::uint64_t number) {
    Ended& ended = ended_[peer.name];
    if (ended.incarnation != peer.incarnation) ended = {.incarnation = peer.incarnation};
    if (std::ranges::find(ended.numbers, number) != ended.numbers.end()) return;
    ended.numbers.push_back(number);
    if (ended.numbers.size() > kMost) ended.numbers.erase(ended.numbers.begin());
}

std::vector<std::uint64_t> EndedConnections::with(const SessionId& peer) const {
    const auto ended = ended_.find(peer.name);
    if (ended == ended_.end() || ended->second.incarnation != peer.incarnation) return {};
    return {ended->second.numbers.begin(), ended->second.numbers.end()};
}

namespace {

/// Returns the error for a peer that was not loaded here.
Status has_gone(const ConnectionInfo& peer) {
    return Status::peer_lost(kNoRank,
                             concat(peer.to_string(), ": its connection has ended, and it was not ",
                                    "loaded here: load its connection info, or let it call again"))
        .with_process(peer.process);
}

Status unknown(const std::string& peer) {
    return Status::invalid_argument(concat("no session \"", peer.substr(0, SessionId::kLongestName),
                                           "\" is known here: load its connection info first"));
}

}  // namespace

void PeerTable::add(const std::shared_ptr<Connection>& connection) {
    const std::string& peer = connection->peer().id.name;
    incarnations_.wake(peer);
    connections_.emplace(peer, connection);
}

PeerTable::Connections PeerTable::all() const {
    Connections all;
    all.reserve(connections_.size());
    for (const auto& [name, connection] : connections_) all.push_back(connection);
    return all;
}

PeerTable::Connections PeerTable::all_to(const std::string& peer) const {
    Connections all;
    const auto [first, last] = connections_.equal_range(peer);
    for (auto each = first; each != last; ++each) all.push_back(each->second);
    return all;
}

std::shared_ptr<Connection> PeerTable::find(const std::string& peer, bool is_fallback) const {
    const auto [first, last] = connections_.equal_range(peer);
    const auto alive = std::find_if(first, last, [is_fallback](const auto& each) {
        return each.second->is_usable() && each.second->is_fallback() == is_fallback;
    });
    return alive == last ? nullptr : alive->second;
}

std::shared_ptr<Connection> PeerTable::find_for(const std::string& peer,
                                                const Status& reachable) const {
    auto connection = find(peer, false);
    const bool goes_by_messages =
        connection != nullptr && connection->is_whole() && !connection->route().is_direct;
    if (!reachable.is_ok() && !goes_by_messages) connection = find(peer, true);
    return connection;
}

Result<const ConnectionInfo*> PeerTable::info_of(const std::string& peer,
                                                 const SessionId* incarnation) const {
    const ConnectionInfo* const known = incarnations_.find(peer);
    if (known == nullptr) return unknown(peer);
    if (incarnation != nullptr && known->id != *incarnation)
        return Status::unavailable(concat(
            "session \"", peer, "\" was restarted as another incarnation since its memory was ",
            "imported: import its present memory"));
    return known;
}

Status PeerTable::check_callable(const ConnectionInfo& peer) const {
    return incarnations_.cannot_be_called(peer.id.name) ? has_gone(peer) : Status::ok();
}

std::optional<SessionId> PeerTable::take_caller(const std::string& peer) {
    const auto connection = peer.empty() ? first_unreported() : first_whole(peer);
    if (connection == nullptr) return std::nullopt;
    const SessionId& caller = connection->peer().id;
    for (IncomingConnection& each : arrived_) each.is_reported |= each.who() == caller;
    return caller;
}

std::shared_ptr<Connection> PeerTable::first_unreported() const {
    // A peer that has reconnected before the loss of its last connection was found is reported
    // after that.
    const auto is_known = [this](const SessionId& who) {
        return std::ranges::any_of(arrived_, [&who](const IncomingConnection& each) {
            return each.is_reported && each.who() == who && each.is_there();
        });
    };
    for (const IncomingConnection& each : arrived_)
        if (!each.is_reported && each.is_there() && !is_known(each.who())) return each.connection;
    return nullptr;
}

std::shared_ptr<Connection> PeerTable::first_whole(const std::string& peer) const {
    const auto [first, last] = connections_.equal_range(peer);
    const auto found =
        std::find_if(first, last, [](const auto& each) { return is_there(*each.second); });
    return found == last ? nullptr : found->second;
}

void PeerTable::remove(const Connections& gone) {
    for (const auto& connection : gone) ended_.add(connection->peer().id, connection->number());
    std::erase_if(connections_, [&gone](const auto& each) {
        return std::ranges::find(gone, each.second) != gone.end();
    });
    rest_peers_of(gone);
}

void PeerTable::rest_peers_of(const Connections& gone) {
    for (const auto& connection : gone) {
        const std::string& peer = connection->peer().id.name;
        if (connections_.contains(peer)) continue;
        if (const auto forgotten = incarnations_.rest(peer)) ended_.forget(*forgotten);
    }
}

PeerTable::Connections PeerTable::take_others(const SessionId& incarnation) {
    Connections others;
    const auto [first, last] = connections_.equal_range(incarnation.name);
    for (auto each = first; each != last;) {
        if (each->second->peer().id == incarnation) {
            ++each;
            continue;
        }
        others.push_back(each->second);
        each = connections_.erase(each);
    }
    return others;
}

PeerTable::Connections PeerTable::take_lost() {
    Connections lost;
    for (auto each = connections_.begin(); each != connections_.end();) {
        if (!each->second->is_lost()) {
            ++each;
            continue;
        }
        ended_.add(each->second->peer().id, each->second->number());
        lost.push_back(each->second);
        each = connections_.erase(each);
    }
    rest_peers_of(lost);
    return lost;
}

void PeerTable::take_lost_arrivals(Connections& lost) {
    arrived_.remove_if([&lost](const IncomingConnection& each) {
        const bool is_lost = each.connection->is_lost();
        if (is_lost) lost.push_back(each.connection);
        return is_lost;
    });
}

std::vector<std::uint64_t> PeerTable::ended_with(const SessionId& peer) {
    const auto [first, last] = connections_.equal_range(peer.name);
    for (auto each = first; each != last; ++each)
        if (!each->second->is_usable()) ended_.add(peer, each->second->number());
    return ended_.with(peer);
}

void PeerTable::leave_ended(const Hello& hello) {
    const auto [first, last] = connections_.equal_range(hello.from.id.name);
    for (auto each = first; each != last; ++each)
        if (std::ranges::find(hello.ended, each->second->number()) != hello.ended.end())
            each->second->mark_left();
}

std::weak_ptr<Matcher>& PeerTable::matcher_of(const SessionId& peer) {
    std::erase_if(matchers_, [](const auto& each) { return each.second.expired(); });
    return matchers_[{peer.name, peer.incarnation}];
}

}  // namespace pccl::p2p
