// Links that messages share: each link is divided equally among the messages on it, and a message
// goes as fast as the most crowded of its links lets it. What one leaves unused there is given to
// nobody, so a step of equal messages takes flows * bytes / bandwidth of its busiest link, as in
// the models of the literature.
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
    /// All of its bytes have left.
    void remove(FlowId flow);

    /// Calls expect(flow, version, end) for each flow that has another speed since the last time:
    /// unless that changes again, it ends then.
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
        double speed = 0;  // bytes a second
        std::uint32_t version = 0;
        bool is_reconsidered = false;
    };

    void touch(int link);
    [[nodiscard]] double speed_of(const Flow& flow) const;
    /// The new flows, and those on links that were touched; there are none then.
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
