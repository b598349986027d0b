// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/wait_for_graph.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

#include "csrc/base/text/text.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/transport/control/close_reason.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kMostInquiries = 16;

Status timed_out(const Stall& stall, Rank culprit, std::string_view finding) {
    const std::string waited =
        concat("timed out: the timeout passed while waiting for ", to_string(stall.awaited));
    return Status::timeout(finding.empty() ? waited : concat(waited, "; ", finding), culprit);
}

Status not_called(const Stall& stall, Rank rank, const RankStatus& answer) {
    const OtherGroupWait& other_group_wait = answer.other_group_wait;
    const std::string where = other_group_wait.operation.empty()
                                  ? ""
                                  : concat(", and waits in ", other_group_wait.operation,
                                           " of group ", other_group_wait.name);
    return timed_out(stall, rank,
                     concat("rank ", rank, " has not called it: it has called ", answer.sequence,
                            " collectives of this group", where));
}

}  // namespace

Status why_different(const Stall& stall, Rank rank, const RankStatus& answer) {
    const auto same =
        std::ranges::find(answer.recent, stall.header.sequence, &abi::CollectiveHeader::sequence);
    if (stall.header.magic == 0 || same == answer.recent.end()) return Status::ok();
    const abi::CollectiveHeader ours = common_part(stall.header);
    const abi::CollectiveHeader theirs = common_part(*same);
    if (std::memcmp(&ours, &theirs, sizeof ours) == 0) return Status::ok();
    return compare(stall.header, *same, {.self = stall.self, .peer = rank});
}

bool is_out_of_order(const Stall& stall, const RankStatus& answer) {
    return answer.sequence < stall.sequence && answer.other_group_wait.lacks_requester;
}

bool is_crossed(const Stall& stall, const RankStatus& answer) {
    return is_out_of_order(stall, answer) && answer.other_group_wait.awaits_requester;
}

Status crossed(const Stall& stall, Rank rank, const OtherGroupWait& other_group_wait) {
    return Status::mismatch(
        rank, concat("ranks use their groups in different orders: rank ", stall.self, " runs ",
                     describe(stall.header), " of group ", stall.group, " and rank ", rank,
                     " runs ", other_group_wait.operation, " of group ", other_group_wait.name,
                     ", each without the other; call all groups in one order on all ranks"));
}

Status why_lost(Rank rank, const Result<RankStatus>& answer, Rank self, int ranks) {
    if (answer.status().code() == StatusCode::kPeerLost) return answer.status();
    if (!answer.is_ok() || answer->broken.is_ok()) return Status::ok();
    return transport::why_gone(answer->broken, {.self = self, .leaver = rank, .ranks = ranks});
}

Status find_culprit(const Stall& stall, const StatusQuery& query) {
    std::deque<Rank> next;
    std::set<Rank> seen{stall.self};
    const auto suspect = [&](Rank rank) {
        if (rank >= 0 && rank < stall.ranks && seen.insert(rank).second) next.push_back(rank);
    };
    for (const Awaited& awaited : stall.awaited) suspect(awaited.rank);
    Status behind;
    const Rank first = next.empty() ? kNoRank : next.front();
    for (std::size_t queried = 0; !next.empty() && queried < kMostInquiries; ++queried) {
        const Rank rank = next.front();
        next.pop_front();
        const Result<RankStatus> answer = query(rank);
        if (Status lost = why_lost(rank, answer, stall.self, stall.ranks); !lost.is_ok())
            return lost;
        if (answer.status().code() == StatusCode::kTimeout)
            return timed_out(stall, rank,
                             concat("rank ", rank, " does not answer: it is stopped, or cut off"));
        if (!answer.is_ok()) continue;
        PCCL_TRY(why_different(stall, rank, *answer));
        if (is_out_of_order(stall, *answer)) return crossed(stall, rank, answer->other_group_wait);
        const bool is_behind = answer->is_whole && answer->sequence < stall.sequence;
        if (is_behind && answer->awaited.empty()) return not_called(stall, rank, *answer);
        // It may be delayed in an earlier collective, by the rank that delays all.
        if (is_behind && behind.is_ok()) behind = not_called(stall, rank, *answer);
        for (const Rank further : answer->awaited) suspect(further);
    }
    return behind.is_ok() ? timed_out(stall, first, "") : behind;
}

}  // namespace pccl::comm
