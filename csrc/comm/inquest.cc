#include "csrc/comm/inquest.h"

#include <deque>
#include <set>

#include "csrc/base/text.h"
#include "csrc/transport/farewell.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kMostAsked = 16;

Status late(const Stall& stall, Rank culprit, std::string_view finding) {
    const std::string waited =
        concat("timed out: the timeout passed while waiting for ", to_string(stall.awaited));
    return Status::timeout(finding.empty() ? waited : concat(waited, "; ", finding), culprit);
}

}  // namespace

Status why_lost(Rank rank, const Result<Situation>& answer, Rank self, int ranks) {
    if (answer.status().code() == StatusCode::kPeerLost) return answer.status();
    if (!answer.is_ok() || answer->broken.is_ok()) return Status::ok();
    return transport::why_gone(answer->broken, {.self = self, .leaver = rank, .ranks = ranks});
}

Status find_culprit(const Stall& stall, const Ask& ask) {
    std::deque<Rank> next;
    std::set<Rank> seen{stall.self};
    const auto suspect = [&](Rank rank) {
        if (rank >= 0 && rank < stall.ranks && seen.insert(rank).second) next.push_back(rank);
    };
    for (const Awaited& awaited : stall.awaited) suspect(awaited.rank);
    const Rank first = next.empty() ? kNoRank : next.front();
    for (std::size_t asked = 0; !next.empty() && asked < kMostAsked; ++asked) {
        const Rank rank = next.front();
        next.pop_front();
        const Result<Situation> answer = ask(rank);
        if (Status lost = why_lost(rank, answer, stall.self, stall.ranks); !lost.is_ok())
            return lost;
        if (answer.status().code() == StatusCode::kTimeout)
            return late(stall, rank,
                        concat("rank ", rank, " does not answer: it is stopped, or cut off"));
        if (!answer.is_ok()) continue;
        if (answer->sequence < stall.sequence)
            return late(stall, rank,
                        concat("rank ", rank, " has not called it: it has called ",
                               answer->sequence, " collectives of this group"));
        for (const Rank further : answer->awaited) suspect(further);
    }
    return late(stall, first, "");
}

}  // namespace pccl::comm
