// SPDX-License-Identifier: Apache-2.0

// Links shared by messages. Each link is divided equally among its messages, and a message has the
// speed of its most crowded link. Bandwidth that a message leaves unused is not given to others. So
// a step of equal messages takes flows * bytes / bandwidth of its busiest link, as in the models of
// the literature.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "csrc/schedule/simulator/network.h"

namespace pccl::schedule {

class SharedLinks {
   public:
    using FlowId = int;

    explicit SharedLinks(std::vector<double> bandwidth)
        : bandwidth_(std::move(bandwidth)),
          crowd_(bandwidth_.size()),
          flows_of_(bandwidth_.size()),
          is_touched_(bandwidth_.size()) {}

    /// Begins to send `bytes` at `now`, the time of the next settle().
    FlowId add(std::vector<Crossing> way, double bytes, double now);
    /// Removes a flow whose bytes have all left.
    void remove(FlowId flow);

    /// Calls expect(flow, version, end) for each flow whose speed changed since the last call. The
    /// flow ends at `end` unless its speed changes again.
    template <typename Expect>
    void settle(double now, Expect expect) {
        for (const FlowId id : to_reconsider()) {
            Flow& flow = flows_[static_cast<std::size_t>(id)];
            const double speed = speed_of(flow);
            if (speed == flow.speed) continue;
            flow.bytes_left -= flow.speed * (now - flow.since);
            flow.since = now;
            flow.speed = speed;
            expect(id, ++flow.version, now + (flow.bytes_left > 0 ? flow.bytes_left / speed : 0));
        }
    }
    [[nodiscard]] bool is_current(FlowId flow, std::uint32_t version) const {
        return flows_[static_cast<std::size_t>(flow)].version == version;
    }

   private:
    struct Flow {
        std::vector<Crossing> way;
        double bytes_left = 0;
        double since = 0;
        double speed = 0;  // bytes per second
        std::uint32_t version = 0;
        bool is_reconsidered = false;
    };

    void touch(int link);
    [[nodiscard]] double speed_of(const Flow& flow) const;
    /// Returns, and clears, the new flows and the flows on touched links.
    [[nodiscard]] std::span<const FlowId> to_reconsider();

    std::vector<double> bandwidth_;
    std::vector<double> crowd_;                  // by link: crossings of the messages on it
    std::vector<std::vector<FlowId>> flows_of_;  // by link
    std::vector<bool> is_touched_;
    std::vector<int> touched_;
    std::vector<Flow> flows_;
    std::vector<FlowId> added_;
    std::vector<FlowId> unused_;
    std::vector<FlowId> reconsidered_;
};

}  // namespace pccl::schedule
