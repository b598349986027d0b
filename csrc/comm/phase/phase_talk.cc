// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/phase/phase_talk.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/comm/diagnosis/self_report.h"

namespace pccl::comm {
namespace {

constexpr Duration kShortestPause = std::chrono::microseconds(100);
// For ranks that only wait for time to pass: for a commit, or for their own operations.
constexpr Duration kLongestPause = std::chrono::milliseconds(20);
constexpr Duration kOneAnswer = std::chrono::milliseconds(500);
constexpr std::size_t kQueriedAtOnce = 16;

}  // namespace

QueryPause::QueryPause() : QueryPause(kShortestPause) {}

QueryPause::QueryPause(Duration first) : rings_(query_bell().rings()), next_(first) {}

QueryPause QueryPause::until_rung() { return QueryPause(kLongestPause); }

void QueryPause::rest() {
    query_bell().rest(rings_, next_);
    rings_ = query_bell().rings();
    next_ = std::min(2 * next_, kLongestPause);
}

PhaseTalk::PhaseTalk(PhasedGroup& group, Duration answer_timeout)
    : group_(group),
      answer_timeout_(answer_timeout),
      own_(group.switching().published()),
      statuses_(static_cast<std::size_t>(group.size())),
      answered_(statuses_.size(), system_clock().now()),
      received_questions_(statuses_.size()) {}

void PhaseTalk::publish_stage(Stage stage) {
    own_.stage = stage;
    group_.switching().publish(own_);
}

Status PhaseTalk::query(Rank rank) {
    const auto index = static_cast<std::size_t>(rank);
    received_questions_[index] = group_.switching().questions_of(rank);
    Result<RankStatus> answer = group_.query(rank, Deadline::after(kOneAnswer));
    if (answer.is_ok()) {
        answered_[index] = system_clock().now();
        statuses_[index] = *std::move(answer);
        return Status::ok();
    }
    if (answer.status().code() == StatusCode::kPeerLost) return answer.status();
    if (system_clock().now() - answered_[index] < answer_timeout_) return Status::ok();
    return Status::timeout(concat("rank ", rank, " does not answer while phases are switched: ",
                                  answer.status().message()),
                           rank);
}

std::vector<Status> PhaseTalk::query_all(const std::vector<Rank>& ranks) {
    std::vector<Status> answers(ranks.size());
    std::atomic<std::size_t> next{0};
    const auto query_some = [&] {
        for (std::size_t i = next++; i < ranks.size(); i = next++) answers[i] = query(ranks[i]);
    };
    {
        std::vector<std::unique_ptr<BackgroundThread>> helpers;
        for (std::size_t count = 1; count < std::min(ranks.size(), kQueriedAtOnce); ++count)
            helpers.push_back(std::make_unique<BackgroundThread>("pccl-query", query_some));
        query_some();
    }
    return answers;
}

std::vector<Rank> PhaseTalk::with_news(const std::vector<Rank>& ranks) const {
    std::vector<Rank> found;
    std::ranges::copy_if(ranks, std::back_inserter(found), [this](Rank rank) {
        return group_.switching().questions_of(rank) >
               received_questions_[static_cast<std::size_t>(rank)];
    });
    return found;
}

bool PhaseTalk::has_result(Rank rank) const {
    return status_of(rank).switching.switch_result.number >= own_.number;
}

std::vector<Rank> PhaseTalk::others() const {
    std::vector<Rank> ranks;
    for (Rank rank = 1; rank < group_.size(); ++rank)
        if (rank != group_.rank()) ranks.push_back(rank);
    return ranks;
}

bool PhaseTalk::has_received_result(Rank rank) const {
    const Switching& theirs = status_of(rank).switching;
    return theirs.number != own_.number || theirs.stage == Stage::kDone ||
           group_.switching().has_shown(rank, own_.number);
}

void PhaseTalk::await_receipt(std::vector<Rank>& unnotified, Deadline until) const {
    for (;;) {
        const std::uint64_t rings = query_bell().rings();
        std::erase_if(unnotified, [this](Rank rank) { return has_received_result(rank); });
        if (unnotified.empty() || until.passed()) return;
        query_bell().rest(rings, until.remaining());
    }
}

void PhaseTalk::publish_result(Switching::SwitchResult switch_result) {
    switch_result.number = own_.number;
    own_.switch_result = std::move(switch_result);
    publish_stage(Stage::kDone);
    const Deadline last = Deadline::after(answer_timeout_);
    std::vector<Rank> unnotified = others();
    while (!unnotified.empty() && !last.passed()) {
        // A rank that receives a request sends one back.
        const std::vector<Status> answers = query_all(unnotified);
        std::vector<Rank> left;
        for (std::size_t i = 0; i < unnotified.size(); ++i)
            // A rank that does not answer obtains the result in other ways.
            if (answers[i].is_ok()) left.push_back(unnotified[i]);
        unnotified = std::move(left);
        await_receipt(unnotified, Deadline::after(kLongestPause));
    }
}

}  // namespace pccl::comm
