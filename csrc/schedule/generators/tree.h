// One chunk up or down a tree: what every tree algorithm repeats.
#pragma once

#include <vector>

#include "csrc/schedule/generators/builder.h"

namespace pccl::schedule {

/// A rank's neighbours in a tree.
struct TreePlace {
    Rank parent = kNoRank;  // kNoRank at the top
    /// In the order in which a reduction takes them; a broadcast goes the other way.
    std::vector<Rank> children;
    [[nodiscard]] bool is_top() const { return parent == kNoRank; }
};

/// The top sends `source`, everybody else receives it into `output` and passes it on.
inline void send_down(LaneBuilder& lane, const TreePlace& place, Slice source, Slice output) {
    auto child = place.children.rbegin();
    if (!place.is_top() && child == place.children.rend()) lane.recv(place.parent, output);
    if (!place.is_top() && child != place.children.rend()) {
        lane.recv_copy_send(place.parent, output, *child++);
    }
    for (; child != place.children.rend(); ++child) {
        lane.send(place.is_top() ? source : output, *child);
    }
}

/// Adds `input` and the children's sums, in `sum` until the last, and hands the total to the parent
/// or, at the top, to `output`. `sum` is used by ranks with two children and more. Returns the last
/// step.
inline Dependency reduce_up(LaneBuilder& lane, const TreePlace& place, Slice input, Slice sum,
                            Slice output) {
    if (place.children.empty()) return lane.send(input, place.parent);
    Slice held = input;
    for (std::size_t i = 0; i + 1 < place.children.size(); ++i) {
        if (held == input) {
            lane.recv_reduce(place.children[i], input, sum);
        } else {
            lane.recv_accumulate(place.children[i], sum);
        }
        held = sum;
    }
    const Rank last = place.children.back();
    return place.is_top() ? lane.recv_reduce(last, held, output)
                          : lane.recv_reduce_send(last, held, place.parent);
}

}  // namespace pccl::schedule
