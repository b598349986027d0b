// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/model/rooted_cost.h"

#include <algorithm>
#include <cmath>

namespace pccl::costs {
namespace {

/// Returns the time of the busiest rank's own messages: an inner rank also receives one.
double own_seconds(const RootedCall& call, LinkModel links, const Traffic& traffic) {
    schedule::Cost busiest = call.cost;
    if (call.goes_on)
        busiest.messages = std::max(busiest.messages, std::min(call.ranks - 1LL, 2LL));
    for (LinkCost* const link : {&links.near, &links.far}) {
        if (!call.goes_on) {
            *link = with_two_children(*link);
            continue;
        }
        link->message_seconds = std::min(link->message_seconds, link->round_seconds);
        link->round_seconds = 0;
    }
    return seconds_over_links(links, busiest, traffic, call.length);
}

/// Chain of messages that carries one window from rank to rank. Bytes are read while they are sent.
class Chain {
   public:
    explicit Chain(const RootedCall& call) : is_of_trees_(!call.goes_on) {
        const double counted = call.goes_on ? 1 : call.windows;
        const double messages = static_cast<double>(call.cost.messages) / counted;
        rounds_ = static_cast<double>(call.cost.rounds) / counted;
        bytes_ = call.cost.bytes_sent / messages / call.windows;
    }

    [[nodiscard]] double rounds() const { return rounds_; }
    [[nodiscard]] double read(const LinkCost& link) const {
        return link.round_seconds + moved(link);
    }
    /// Returns the time after its sender has finished.
    [[nodiscard]] double on_its_way(const LinkCost& link) const {
        return std::max(link.message_seconds - link.round_seconds, 0.0) + read(link);
    }
    [[nodiscard]] double sent_and_read(const LinkCost& link) const {
        constexpr double kOfTwoChildren = 1.5;  // mean of the first and the second child
        const double sent = is_of_trees_ ? kOfTwoChildren * (link.message_seconds + moved(link))
                                         : link.message_seconds;
        return sent + read(link);
    }

   private:
    [[nodiscard]] double moved(const LinkCost& link) const {
        return bytes_ * link.seconds_per_byte;
    }

    bool is_of_trees_;
    double rounds_ = 0;
    double bytes_ = 0;  // of one message
};

/// Returns the time until the last rank has its data: the first window passes along the whole
/// chain, the others follow.
double until_the_last(const RootedCall& call, const LinkModel& links, const Traffic& traffic,
                      double own) {
    const Chain chain(call);
    const double far = std::ceil(chain.rounds() * traffic.far_share);
    const double first = far * chain.sent_and_read(links.far) +
                         (chain.rounds() - far) * chain.sent_and_read(links.near);
    return std::max(own + chain.on_its_way(far > 0 ? links.far : links.near),
                    first + own * (1 - 1 / call.windows));
}

}  // namespace

double seconds_with_root(const RootedCall& call, const LinkModel& links, const Traffic& traffic) {
    const double own = own_seconds(call, links, traffic);
    if (call.cost.messages == 0) return own;
    return (own + until_the_last(call, links, traffic, own)) / 2;
}

LinkCost with_two_children(LinkCost link) {
    link.round_seconds += link.message_seconds / 2;
    return link;
}

}  // namespace pccl::costs
