// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/generators/embedding.h"

#include <utility>

namespace pccl::schedule {
namespace {

Slices placed(const Slices& slices, const Embedding& embedding) {
    Slices all;
    for (const Slice& slice : slices)
        for (const Slice& piece : embedding.place(slice)) all.add(piece);
    return all;
}

PeerPort placed(const PeerPort& port, const Embedding& embedding) {
    if (!port.is_used()) return port;
    return {embedding.ranks[static_cast<std::size_t>(port.peer)], port.channel};
}

Step placed(const Step& step, const Embedding& embedding, int first_lane) {
    Step own{.action = step.action,
             .src = placed(step.src, embedding),
             .dst = placed(step.dst, embedding),
             .from = placed(step.from, embedding),
             .to = placed(step.to, embedding)};
    for (const Dependency& dependency : step.after)
        own.after.push_back({dependency.lane + first_lane, dependency.step});
    if (own.action == Action::kCopy && own.src == own.dst)
        return {.action = Action::kNop, .after = std::move(own.after)};
    return own;
}

}  // namespace

std::vector<Dependency> embed(Program& program, const Program& part, const Embedding& embedding,
                              const std::vector<Dependency>& after) {
    const int first_lane = static_cast<int>(program.lanes.size());
    std::vector<Dependency> ends;
    for (const Lane& lane : part.lanes) {
        Lane own;
        for (const Step& step : lane) own.push_back(placed(step, embedding, first_lane));
        own.front().after.insert(own.front().after.end(), after.begin(), after.end());
        ends.push_back({static_cast<int>(program.lanes.size()), static_cast<int>(own.size()) - 1});
        program.lanes.push_back(std::move(own));
    }
    return ends;
}

}  // namespace pccl::schedule
