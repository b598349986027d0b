// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/shm/shm_setup.h"

#include <chrono>
#include <utility>
#include <vector>

#include "csrc/base/assert.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/locality.h"

namespace pccl::comm {
namespace {

constexpr Duration kBetweenQuestions = std::chrono::milliseconds(200);
constexpr Duration kAnswerTimeout = std::chrono::milliseconds(500);

}  // namespace

bool ShmSetup::has_segment(const bootstrap::Roster& roster) {
    const std::size_t ranks = roster.endpoints.size();
    return ranks > 1 && ranks <= kMostShmRanks && is_on_one_host(roster);
}

Status ShmSetup::make(const QueryFirst& query_first, const MemoryVote& vote, Deadline deadline,
                      std::unique_ptr<ShmSegment>& segment) {
    Status made = make_and_open(query_first, vote, deadline, segment);
    if (made.is_ok()) return made;
    const Status off = peers_.rank() == 0 || !vote.called_off ? made : vote.called_off();
    if (off.code() != StatusCode::kUnsupported) return made;
    segment.reset();
    awaited_.store(kNoRank);
    log(peers_.rank() == 0 ? LogLevel::kWarning : LogLevel::kInfo, "group ", peers_.group_name(),
        ": its ranks share no memory, and use TCP: ", off.message());
    return Status::ok();
}

Status ShmSetup::make_and_open(const QueryFirst& query_first, const MemoryVote& vote,
                               Deadline deadline, std::unique_ptr<ShmSegment>& segment) {
    PCCL_ASSIGN_OR_RETURN(auto region, peers_.rank() == 0
                                           ? share_region(vote, deadline)
                                           : await_region(query_first, vote, deadline));
    segment = std::make_unique<ShmSegment>(std::move(region), peers_.rank(), peers_.size());
    return open(*segment, deadline);
}

Status ShmSetup::call_off(const Status& why, const MemoryVote& vote) {
    // Without a store to publish the vote, the group fails.
    if (!vote.call_off) return Status(StatusCode::kUnavailable, why.message(), why.peer());
    PCCL_TRY(vote.call_off(why));
    return Status::unsupported(why.message());
}

Result<std::unique_ptr<transport::Region>> ShmSetup::share_region(const MemoryVote& vote,
                                                                  Deadline deadline) {
    bool is_called_off = false;
    const auto unreached = [&](const Status& why) {
        const bool is_there = vote.is_there && why.peer() != kNoRank &&
                              vote.is_there(why.peer(), Deadline::after(kAnswerTimeout));
        is_called_off = is_there;
        return is_there ? call_off(why, vote) : why;
    };

    std::vector<transport::PeerAddress> ranks;
    ranks.reserve(static_cast<std::size_t>(peers_.size()));
    for (Rank rank = 0; rank < peers_.size(); ++rank)
        ranks.push_back(peers_.endpoint(rank).address);
    transport::Transport* const shm = runtime_.find(transport::TransportKind::kShm);
    PCCL_ASSERT(shm != nullptr && shm->regions() != nullptr);
    auto region = shm->regions()->share({.group = peers_.identity().group,
                                         .ranks = ranks,
                                         .waits_for = [this](Rank rank) { awaited_.store(rank); },
                                         .unreached = unreached},
                                        peers_.identity().secret, deadline);
    // A memory limit may have been set after the transport was created: no rank has received an
    // offer yet.
    const StatusCode code = region.status().code();
    const bool lacks_memory = code == StatusCode::kUnavailable || code == StatusCode::kUnsupported;
    return lacks_memory && !is_called_off ? call_off(region.status(), vote) : std::move(region);
}

Result<std::unique_ptr<transport::Region>> ShmSetup::await_region(const QueryFirst& query_first,
                                                                  const MemoryVote& vote,
                                                                  Deadline deadline) {
    transport::Backoff backoff(*runtime_.waiter());
    Deadline look = Deadline::after(kBetweenQuestions);
    const TimePoint since = system_clock().now();
    awaited_.store(0);
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            if (region_ != nullptr) return std::move(region_);
        }
        if (shortage_.is_set()) return shortage_.get();
        if (deadline.passed())
            return Status::timeout("timed out waiting for rank 0 (to share its memory)", 0);
        warn_if_slow(since, 0, "share its memory");
        if (look.passed()) {
            if (vote.called_off) PCCL_TRY(vote.called_off());
            const Status answer = query_first(Deadline::after(kAnswerTimeout));
            if (answer.code() == StatusCode::kPeerLost) return answer;
            look = Deadline::after(kBetweenQuestions);
        }
        backoff.pause();
    }
}

void ShmSetup::warn_if_slow(TimePoint since, Rank rank, std::string_view act) {
    if (const Duration waited = system_clock().now() - since; notice_.is_due(waited))
        log(LogLevel::kWarning, "group ", peers_.group_name(), ": rank ", peers_.rank(),
            " has waited ", in_seconds(waited), " for rank ", rank, " to ", act);
}

Status ShmSetup::open(ShmSegment& segment, Deadline deadline) {
    transport::Backoff backoff(*runtime_.waiter());
    const TimePoint since = system_clock().now();
    for (;;) {
        const std::uint64_t waits = segment.waits();
        PCCL_ASSIGN_OR_RETURN(const bool is_open, segment.open());
        if (is_open) break;
        if (segment.waits() != waits) backoff.reset();
        // If rank 0 has not completed the segment, no rank is awaited in shared memory yet.
        const Rank late = segment.awaited() == kNoRank ? 0 : segment.awaited();
        awaited_.store(late);
        if (deadline.passed())
            return Status::timeout(
                concat("timed out waiting for rank ", late, " (to open the group's shared memory)"),
                late);
        if (backoff.slept()) PCCL_TRY(segment.look_while_opening());
        warn_if_slow(since, late, "open the group's shared memory");
        backoff.pause();
    }
    awaited_.store(kNoRank);
    runtime_.waiter()->share_cores(segment.crowd());
    if (segment.leaves_barriers_to_sleepers()) runtime_.waiter()->take_barriers();
    log(LogLevel::kInfo, "group ", peers_.group_name(), ": rank ", peers_.rank(),
        " shares memory with ", peers_.size() - 1, " ranks of this host",
        segment.reads_directly() ? ", which read each other's memory directly" : "");
    return Status::ok();
}

void ShmSetup::accepted(const transport::LinkRequest& request,
                        std::unique_ptr<transport::Region> region) {
    if (request.source != 0 || request.destination != peers_.rank() ||
        request.group_size != peers_.size())
        return runtime_.refused(
            to_string(transport::TransportKind::kShm),
            Status::invalid_argument(concat("a region from rank ", request.source, " to rank ",
                                            request.destination, " does not belong to group ",
                                            peers_.group_name())));
    const std::lock_guard lock(mutex_);
    region_ = std::move(region);
}

}  // namespace pccl::comm
