// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/simulator/shared_links.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "csrc/base/ids.h"

namespace pccl::schedule {

SharedLinks::FlowId SharedLinks::add(std::vector<Crossing> way, double bytes, double now) {
    if (unused_.empty()) {
        unused_.push_back(static_cast<FlowId>(flows_.size()));
        flows_.emplace_back();
    }
    const FlowId id = unused_.back();
    unused_.pop_back();
    for (const Crossing& crossing : way) {
        crowd_[at(crossing.link)] += crossing.times;
        flows_of_[at(crossing.link)].push_back(id);
        touch(crossing.link);
    }
    Flow& flow = flows_[at(id)];
    flow.way = std::move(way);
    flow.bytes_left = bytes;
    flow.since = now;
    flow.speed = 0;
    added_.push_back(id);
    return id;
}

void SharedLinks::remove(FlowId flow) {
    for (const Crossing& crossing : flows_[at(flow)].way) {
        crowd_[at(crossing.link)] -= crossing.times;
        auto& flows = flows_of_[at(crossing.link)];
        *std::ranges::find(flows, flow) = flows.back();
        flows.pop_back();
        touch(crossing.link);
    }
    ++flows_[at(flow)].version;
    unused_.push_back(flow);
}

void SharedLinks::touch(int link) {
    if (is_touched_[at(link)]) return;
    is_touched_[at(link)] = true;
    touched_.push_back(link);
}

double SharedLinks::speed_of(const Flow& flow) const {
    double speed = std::numeric_limits<double>::infinity();
    for (const Crossing& crossing : flow.way)
        speed = std::min(speed, bandwidth_[at(crossing.link)] / crowd_[at(crossing.link)]);
    return speed;
}

std::span<const SharedLinks::FlowId> SharedLinks::to_reconsider() {
    reconsidered_.clear();
    const auto reconsider = [&](FlowId flow) {
        if (!std::exchange(flows_[at(flow)].is_reconsidered, true)) reconsidered_.push_back(flow);
    };
    for (const FlowId flow : std::exchange(added_, {})) reconsider(flow);
    for (const int link : std::exchange(touched_, {})) {
        is_touched_[at(link)] = false;
        for (const FlowId flow : flows_of_[at(link)]) reconsider(flow);
    }
    for (const FlowId flow : reconsidered_) flows_[at(flow)].is_reconsidered = false;
    return reconsidered_;
}

}  // namespace pccl::schedule
