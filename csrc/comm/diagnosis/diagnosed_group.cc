// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/diagnosed_group.h"

#include <chrono>

namespace pccl::comm {
namespace {

constexpr int kTries = 20;
constexpr Duration kBetweenTries = std::chrono::milliseconds(1);

}  // namespace

std::unique_lock<std::mutex> lock_soon(const DiagnosedGroup& group) {
    std::unique_lock lock(group.mutex(), std::try_to_lock);
    for (int i = 0; i < kTries && !lock.owns_lock(); ++i) {
        system_clock().sleep_for(kBetweenTries);
        static_cast<void>(lock.try_lock());
    }
    return lock;
}

void give_up(DiagnosedGroup& group, const Status& why) {
    if (!group.progress()) group.end(why);
}

std::vector<Rank> ranks_of(const AwaitedRanks& awaited) {
    std::vector<Rank> ranks;
    for (const Awaited& one : awaited)
        if (one.rank != kNoRank) ranks.push_back(one.rank);
    return ranks;
}

}  // namespace pccl::comm
