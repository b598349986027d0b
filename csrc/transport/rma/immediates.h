// SPDX-License-Identifier: Apache-2.0

// Immediates of RDMA: an empty write with immediate behind the writes of a queue pair arrives only
// after the peer's device has executed all of them, and never if one of them fails.
#pragma once

#include <cstdint>

namespace pccl::transport {

struct RmaImmediate {
    /// Limit of the immediates before one notification: one for each lane.
    static constexpr std::uint32_t kMostTogether = 16;

    std::uint32_t lane = 0;
    std::uint32_t pair = 0;    // queue pair of the lane, counted from 1
    std::uint32_t number = 0;  // of the queue pair, counted from 1

    bool operator==(const RmaImmediate&) const = default;
};

/// Immediates of both directions of a connection.
class RmaImmediates {
   public:
    /// State of one that this end has posted. It is lost with its queue pair, also where it had
    /// arrived.
    enum class State { kInFlight, kArrived, kLost };

    virtual ~RmaImmediates() = default;
    [[nodiscard]] virtual State state_of(const RmaImmediate& /*posted*/) const {
        return State::kLost;
    }
    /// Returns how many queue pairs with immediates of this end have ended.
    [[nodiscard]] virtual std::uint64_t lost_pairs() const { return 0; }
    /// Returns whether an immediate of the peer has arrived, as long as its queue pair is the last
    /// one of the lane.
    virtual bool has_arrived(const RmaImmediate& /*of_peer*/) { return false; }
};

}  // namespace pccl::transport
