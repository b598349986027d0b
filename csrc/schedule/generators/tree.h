// SPDX-License-Identifier: Apache-2.0

// Transfer of one chunk up or down a tree, common to all tree algorithms.
#pragma once

#include <vector>

#include "csrc/schedule/generators/builder.h"

namespace pccl::schedule {

/// Neighbours of a rank in a tree.
struct TreePlace {
    Rank parent = kNoRank;  // kNoRank at the top
    /// In the order of a reduction; a broadcast uses the reverse order.
    std::vector<Rank> children;
    [[nodiscard]] bool is_top() const { return parent == kNoRank; }
};

/// Appends a broadcast step: the top sends `source`; every other rank receives into `output` and
/// forwards it.
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

/// Appends a reduction: adds `input` and the children's sums, with partial sums in `sum`. The total
/// goes to the parent or, at the top, to `output`. Only ranks with two or more children use `sum`.
/// Returns the last step.
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
