// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/diagnosed_group.h"

#include <chrono>
#include <string>

#include "csrc/base/text/text.h"

namespace pccl::comm {
namespace {

constexpr int kTries = 20;
constexpr Duration kBetweenTries = std::chrono::milliseconds(1);

std::string_view advice(const Status& cause) {
    switch (cause.code()) {
        case StatusCode::kPeerLost:
            return "; this group is over: go on without that rank (pccl.shrink), or restart the "
                   "job";
        case StatusCode::kTimeout:
            return "; this group is over: see what that rank does (pccl debug), or allow more time";
        case StatusCode::kMismatch:
            return "; this group is over: mend the program, and make a new group";
        default:
            return "";
    }
}

}  // namespace

Status explained(const Status& cause, const runtime::PeerDirectory& peers,
                 std::string_view operation) {
    std::string text = concat("group ", peers.group_name(), operation.empty() ? "" : ", ",
                              operation, ": ", cause.message());
    Status status = cause;
    const Rank peer = cause.peer();
    if (peer >= 0 && peer < peers.size() && peer != peers.rank() && peers.has_endpoints()) {
        const bootstrap::Endpoint& endpoint = peers.endpoint(peer);
        text += concat(" (rank ", peer, " is process ", endpoint.pid, " on ", endpoint.host, ")");
        status = status.with_process({.host = endpoint.host, .pid = endpoint.pid});
    }
    return status.with_message(concat(text, advice(cause)));
}

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
