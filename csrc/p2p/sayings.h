// What is to be said to peers once no lock of a connection is held.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/p2p/peer_word.h"
#include "csrc/p2p/relay_lock.h"

namespace pccl::p2p {

class Connection;

/// Safe from every thread.
class Sayings {
   public:
    explicit Sayings(transport::Waiter& waiter) : saying_(waiter) {}

    /// Also under locks of connections.
    void add(std::shared_ptr<Connection> to, PeerWord word);
    /// Of those that were not said yet.
    [[nodiscard]] std::size_t count_to(const Connection& peer) const;
    /// Says them in their order, as many as there is room for; whether that was any. Those to a
    /// peer that is lost are forgotten. Nothing where another thread is at it.
    bool say();
    /// Of a peer that is lost.
    void forget(const Connection& peer);

   private:
    struct Saying {
        std::shared_ptr<Connection> to;
        PeerWord word;
    };

    RelayLock saying_;          // held by who says; before mutex_
    mutable std::mutex mutex_;  // after those of connections
    std::vector<Saying> sayings_;
};

}  // namespace pccl::p2p
