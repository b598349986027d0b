// SPDX-License-Identifier: Apache-2.0

// Barrier that names missing ranks: every rank reports to rank 0, which answers when all have
// reported.
#include <algorithm>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/comm/communicator.h"

namespace pccl::comm {
namespace {

constexpr std::int32_t kArrivedTag = kReservedTags;
constexpr std::int32_t kGoTag = kReservedTags + 1;

enum class Answer : std::uint8_t { kGo = 1, kSomeMissing = 2 };

Status report_to_root(CommunicatorImpl& comm, std::chrono::milliseconds timeout) {
    std::byte token{1};
    PCCL_ASSIGN_OR_RETURN(const Event arrived,
                          comm.send(0, kArrivedTag, {&token, 1}, {.timeout = timeout}));
    PCCL_ASSIGN_OR_RETURN(const Event go,
                          comm.receive(0, kGoTag, {&token, 1}, {.timeout = timeout}));
    const Status sent = arrived.wait();
    const Status answered = sent.is_ok() ? go.wait() : sent;
    // Programs match this text, which is Gloo's.
    const std::string failed =
        concat("Rank ", comm.rank(), " successfully reached monitoredBarrier, but received errors",
               " while waiting for send/recv from rank 0");
    if (!answered.is_ok()) return answered.with_context(failed);
    if (token == std::byte{static_cast<std::uint8_t>(Answer::kGo)}) return Status::ok();
    return Status::timeout(concat(failed, ", which timed out waiting for other ranks"));
}

Status answer_all(CommunicatorImpl& comm, Answer answer, const std::vector<Rank>& ranks) {
    const std::byte token{static_cast<std::uint8_t>(answer)};
    for (const Rank rank : ranks) {
        PCCL_ASSIGN_OR_RETURN(const Event sent, comm.send(rank, kGoTag, {&token, 1}));
        PCCL_TRY(sent.wait());
    }
    return Status::ok();
}

Status collect_reports(CommunicatorImpl& comm, std::chrono::milliseconds timeout, bool wait_all) {
    std::vector<std::byte> tokens(static_cast<std::size_t>(comm.size()));
    std::vector<Event> reports;
    for (Rank rank = 1; rank < comm.size(); ++rank) {
        PCCL_ASSIGN_OR_RETURN(
            reports.emplace_back(),
            comm.receive(rank, kArrivedTag, {&tokens[static_cast<std::size_t>(rank)], 1},
                         {.timeout = timeout}));
    }
    std::vector<Rank> present;
    std::vector<Rank> missing;
    for (Rank rank = 1; rank < comm.size(); ++rank) {
        const bool here = reports[static_cast<std::size_t>(rank - 1)].wait().is_ok();
        (here ? present : missing).push_back(rank);
        if (!here && !wait_all) break;
    }
    if (missing.empty()) return answer_all(comm, Answer::kGo, present);
    std::string names;
    for (const Rank rank : missing) names += concat(names.empty() ? "" : ", ", rank);
    const std::string text =
        concat("Rank 0 timed out in monitoredBarrier: ", wait_all ? "Ranks " : "Rank ", names,
               " failed to pass monitoredBarrier in ", timeout.count(), " ms",
               wait_all ? "" : " (others may be missing too)");
    const Status delivered = answer_all(comm, Answer::kSomeMissing, present);
    return Status::timeout(delivered.is_ok() ? text : concat(text, "; ", delivered.message()),
                           missing.front());
}

}  // namespace

Status CommunicatorImpl::monitored_barrier(std::chrono::milliseconds timeout, bool wait_all) {
    return rank() == 0 ? collect_reports(*this, timeout, wait_all) : report_to_root(*this, timeout);
}

}  // namespace pccl::comm
