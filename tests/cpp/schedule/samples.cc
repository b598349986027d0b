// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/schedule/samples.h"

namespace pccl::schedule::testing {

Schedule two_lane_ring_all_reduce(int ranks) {
    Schedule schedule{
        .name = "two_lane_ring",
        .shape = {.kind = CollectiveKind::kAllReduce, .ranks = ranks, .chunks = ranks, .slots = 1},
        .programs = {}};
    for (Rank rank = 0; rank < ranks; ++rank) {
        const PeerPort left{(rank + ranks - 1) % ranks};
        const PeerPort right{(rank + 1) % ranks};
        const auto chunk = [&](Buffer buffer, int behind) {
            return Slice{buffer, (rank + 2 * ranks - behind) % ranks, 1};
        };
        Lane receives;
        Lane sends;
        sends.push_back({.action = Action::kSend, .src = chunk(Buffer::kInput, 1), .to = right});
        for (int round = 1; round <= 2 * (ranks - 1); ++round) {
            const bool reducing = round < ranks;
            const Slice dst = chunk(Buffer::kOutput, reducing ? round + 1 : round - ranks + 1);
            if (reducing) {
                receives.push_back({.action = Action::kRecvReduce,
                                    .src = chunk(Buffer::kInput, round + 1),
                                    .dst = dst,
                                    .from = left});
            } else {
                receives.push_back({.action = Action::kRecv, .dst = dst, .from = left});
            }
            if (round == 2 * (ranks - 1)) break;
            sends.push_back(
                {.action = Action::kSend, .src = dst, .to = right, .after = {{0, round - 1}}});
        }
        schedule.programs.push_back({.lanes = {receives, sends}});
    }
    return schedule;
}

}  // namespace pccl::schedule::testing
