// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/channels.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace pccl::capsule::mscclpp {
namespace {

using BlockPair = std::tuple<Rank, Rank, std::size_t, std::size_t>;

BlockPair blocks_of(const Delivery& each) {
    return {each.sent.gpu, each.received.gpu, each.sent.block, each.received.block};
}

}  // namespace

bool sent_before(const Delivery& a, const Delivery& b) {
    return std::tie(a.sent, a.is_read, a.received, a.src, a.dst) <
           std::tie(b.sent, b.is_read, b.received, b.src, b.dst);
}

bool received_before(const Delivery& a, const Delivery& b) {
    return std::tie(a.received, a.is_read, a.sent, a.src, a.dst) <
           std::tie(b.received, b.is_read, b.sent, b.src, b.dst);
}

void assign_channels(std::vector<Delivery>& deliveries) {
    std::vector<Delivery*> sorted;
    sorted.reserve(deliveries.size());
    for (Delivery& each : deliveries) sorted.push_back(&each);
    std::ranges::sort(sorted, [](const Delivery* a, const Delivery* b) {
        return blocks_of(*a) != blocks_of(*b) ? blocks_of(*a) < blocks_of(*b) : sent_before(*a, *b);
    });
    std::map<BlockPair, std::vector<Delivery*>> last;  // last messages of each channel
    std::map<std::pair<Rank, Rank>, int> count;
    for (Delivery* const each : sorted) {
        auto& channels = last[blocks_of(*each)];
        const auto fits = std::ranges::find_if(
            channels, [&](const Delivery* before) { return received_before(*before, *each); });
        if (fits != channels.end()) {
            each->channel = (*fits)->channel;
            *fits = each;
            continue;
        }
        each->channel = count[{each->sent.gpu, each->received.gpu}]++;
        channels.push_back(each);
    }
}

}  // namespace pccl::capsule::mscclpp
