// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/peer_health.h"

#include "csrc/schedule/schedule.h"

namespace pccl::comm {

std::string_view to_string(PeerHealth::State state) {
    switch (state) {
        case PeerHealth::State::kHere:
            return "here";
        case PeerHealth::State::kSilent:
            return "silent";
        case PeerHealth::State::kGone:
            return "gone";
    }
    return "unknown";
}

bool is_sign_of(Rank peer, const runtime::FlightEntry& entry, Rank self) {
    if (entry.finished == TimePoint{} || entry.outcome != StatusCode::kOk) return false;
    if (entry.kind == runtime::FlightKind::kSend) return false;
    if (entry.kind == runtime::FlightKind::kReceive) return entry.message.peer == peer;
    const Rank root = entry.collective.root;
    switch (static_cast<schedule::CollectiveKind>(entry.collective.kind)) {
        case schedule::CollectiveKind::kBroadcast:
        case schedule::CollectiveKind::kScatter:
            return peer == root;
        case schedule::CollectiveKind::kReduce:
        case schedule::CollectiveKind::kGather:
            return self == root;
        default:
            return true;
    }
}

}  // namespace pccl::comm
