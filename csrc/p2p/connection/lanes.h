// SPDX-License-Identifier: Apache-2.0

// Lanes of a connection: further pairs of streams, for large transfers (transport/rma/bundle.h).
//
// The side that has a large transfer opens all lanes, and the other one answers for each; both may
// begin at the same time. A lane is used once both streams are known on both sides:
//
//     one side                                         the other
//       | -- stream, greeting: connection, lane ------> |
//       | <- stream, greeting ------------------------- |
//       | -- greeting: ready -------------------------> |   it may send requests now
//       | <- greeting: ready -------------------------- |   so may this side
//
// A lane that cannot be opened is left out. Nothing here blocks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <pccl/deadline.h>
#include "csrc/p2p/connection/connection_info.h"
#include "csrc/p2p/connection/handshake.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/bundle.h"
#include "csrc/transport/rma/frames.h"
#include "csrc/transport/transport.h"

namespace pccl::p2p {

/// Number of lanes that a session may still open. Thread-safe.
class LaneBudget {
   public:
    explicit LaneBudget(int lanes) : left_(lanes) {}
    /// Returns the budget of a session whose streams have so many sockets for data: the sockets of
    /// all its lanes use at most a quarter of the descriptors that its process may have.
    static std::shared_ptr<LaneBudget> of_process(int data_sockets);

    [[nodiscard]] bool take() {
        if (left_.fetch_sub(1) > 0) return true;
        put_back();
        return false;
    }
    void put_back() { left_.fetch_add(1); }

   private:
    std::atomic<int> left_;
};

/// Lanes that a connection has, for statistics.
struct LaneReport {
    std::size_t lanes = 0;  // that large transfers use
    std::string reason{};   // why there are not more; empty: there could be no more
};

/// Not thread-safe: the connection's lock guards it.
class Lanes {
   public:
    /// `budget` and `transport` may be null: then there are no lanes.
    Lanes(const ConnectionInfo& peer, std::uint64_t connection, transport::Transport* transport,
          std::shared_ptr<LaneBudget> budget)
        : peer_(peer), connection_(connection), transport_(transport), budget_(std::move(budget)) {}
    ~Lanes();
    Lanes(const Lanes&) = delete;
    Lanes& operator=(const Lanes&) = delete;

    /// Lets the first `count` lanes be opened and added to `bundle`, which must outlive the last
    /// progress().
    void allow(std::size_t count, transport::RmaBundle& bundle);
    /// Records why there are no lanes.
    void forbid(std::string why) { why_fewer_ = std::move(why); }
    /// Begins to open the lanes that are allowed and not begun. `timeout` limits the peer's answer.
    void open(Duration timeout);
    /// Takes the stream of a lane that the peer has opened.
    void arrived(std::size_t lane, std::unique_ptr<transport::RecvLink> in, Duration timeout);
    /// Makes progress on lanes that are being opened.
    void progress();
    /// Ends the lanes that are being opened, and allows no more.
    void give_up(const Status& reason);
    [[nodiscard]] LaneReport report() const;

   private:
    /// Lane that is being opened.
    struct OpeningLane {
        std::unique_ptr<transport::PendingConnect> pending;  // null once connected
        transport::RmaStreams streams;
        std::string greetings;  // to be sent
        std::size_t sent = 0;   // bytes of these
        HandshakeReader reader;
        Deadline deadline;
        bool is_ready = false;  // the second greeting is in `greetings`
    };

    /// Stream that has arrived before allow().
    struct EarlyStream {
        std::unique_ptr<transport::RecvLink> stream;
        Duration timeout{};
    };

    void begin(std::size_t lane, Duration timeout);
    /// Returns true once the lane may be used.
    Result<bool> advance(OpeningLane& opening, std::size_t lane) const;
    static Result<bool> send_greetings(OpeningLane& opening);
    [[nodiscard]] std::string greeting(std::size_t lane, bool is_ready) const;
    void leave_out(std::size_t lane, const Status& why);
    /// Returns a lane's share of the budget.
    void give_back();
    static void end(OpeningLane& opening, const Status& reason);

    const ConnectionInfo& peer_;
    const std::uint64_t connection_;
    transport::Transport* const transport_;
    const std::shared_ptr<LaneBudget> budget_;
    transport::RmaBundle* bundle_ = nullptr;
    std::size_t allowed_ = 0;
    std::size_t added_ = 0;  // to the bundle
    std::string why_fewer_;  // why lanes are left out; empty: none is
    std::array<std::unique_ptr<OpeningLane>, transport::kMostRmaLanes> opening_;
    std::array<bool, transport::kMostRmaLanes> begun_{};
    std::array<EarlyStream, transport::kMostRmaLanes> early_;
    int taken_ = 0;  // of the budget
};

}  // namespace pccl::p2p
