// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/communicator.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <utility>

#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/job_exchange.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/group/group.h"
#include "csrc/comm/join/rendezvous.h"
#include "csrc/runtime/runtime.h"
#include "csrc/sys/cpu/tick_clock.h"

namespace pccl::comm {
namespace {

constexpr int kSurveyedAtOnce = 32;  // ranks

CommunicatorImplOptions without_runtime(CommunicatorImplOptions options) {
    options.runtime.reset();
    return options;
}

}  // namespace

Result<std::shared_ptr<CommunicatorImpl>> CommunicatorImpl::create(
    const CommunicatorImplOptions& options) {
    if (!options.interrupted) return join(options, Cancellation());
    return run_interruptibly(
        "pccl-meet", options.interrupted,
        [&options](const Cancellation& cancellation) { return join(options, cancellation); });
}

Result<std::shared_ptr<CommunicatorImpl>> CommunicatorImpl::join(
    const CommunicatorImplOptions& options, const Cancellation& cancellation) {
    Rendezvous rendezvous(options, cancellation);
    PCCL_ASSIGN_OR_RETURN(auto group, rendezvous.join());
    return std::shared_ptr<CommunicatorImpl>(
        new CommunicatorImpl(rendezvous.options(), std::move(group)));
}

CommunicatorImpl::CommunicatorImpl(const CommunicatorImplOptions& options,
                                   std::shared_ptr<Group> group)
    : options_(without_runtime(options)),
      runtime_(options.runtime),
      group_(std::move(group)),
      memory_({.rank = options.rank, .size = options.size, .store = options.store}) {}

CommunicatorImpl::~CommunicatorImpl() { static_cast<void>(shutdown()); }

Rank CommunicatorImpl::rank() const { return group_->rank(); }
int CommunicatorImpl::size() const { return group_->size(); }
const std::string& CommunicatorImpl::name() const { return group_->name(); }
std::chrono::milliseconds CommunicatorImpl::timeout() const { return group_->timeout(); }
void CommunicatorImpl::set_timeout(std::chrono::milliseconds timeout) {
    group_->set_timeout(timeout);
}
std::uint64_t CommunicatorImpl::sequence() const { return group_->sequence(); }

Status CommunicatorImpl::check_call(const Collective& collective) const {
    return group_->check_call(collective);
}

Status CommunicatorImpl::run(const Collective& collective, OptionalTimeout timeout) {
    return group_->run(collective, timeout);
}

Result<Event> CommunicatorImpl::submit(const Collective& collective, OptionalTimeout timeout) {
    return group_->submit(collective, timeout);
}

Result<Event> CommunicatorImpl::send(Rank peer, std::int32_t tag, std::span<const std::byte> bytes,
                                     const MessageOptions& options) {
    return group_->post({.direction = MessageOperation::Direction::kSend,
                         .self = rank(),
                         .peer = peer,
                         .tag = tag,
                         .data = const_cast<std::byte*>(bytes.data()),
                         .bytes = bytes.size(),
                         .type = options.type},
                        options);
}

Result<Event> CommunicatorImpl::receive(Rank peer_or_any, std::int32_t tag,
                                        std::span<std::byte> bytes, const MessageOptions& options) {
    return group_->post({.direction = MessageOperation::Direction::kReceive,
                         .self = rank(),
                         .peer = peer_or_any,
                         .tag = tag,
                         .data = bytes.data(),
                         .bytes = bytes.size(),
                         .type = options.type},
                        options);
}

Status CommunicatorImpl::barrier(OptionalTimeout timeout) {
    std::byte token{1};
    const Block block{&token, 1};
    return run({.kind = CollectiveKind::kAllReduce,
                .type = DataType::kUint8,
                .op = ReduceOp::kMax,
                .inputs = {&block, 1},
                .outputs = {&block, 1},
                .is_barrier = true},
               timeout);
}

Result<std::vector<Prediction>> CommunicatorImpl::explain(CollectiveKind kind,
                                                          std::size_t bytes) const {
    PCCL_TRY(check_process());
    return group_->selector()->explain(kind, block_bytes(kind, bytes, size()));
}

Status CommunicatorImpl::record_timeline(std::size_t most) {
    PCCL_TRY(check_process());
    if (most > Timeline::kMostSteps)
        return Status::invalid_argument(concat("a timeline of ", most, " steps; at most ",
                                               Timeline::kMostSteps, " are recorded"));
    if (most > 0) TickClock::find_rate();
    group_->timeline()->start(most);
    return Status::ok();
}

Result<TimedSteps> CommunicatorImpl::take_timeline() {
    PCCL_TRY(check_process());
    return group_->timeline()->take();
}

bootstrap::LinksCountedOn CommunicatorImpl::links_counted_on() const {
    bootstrap::LinksCountedOn found = costs::counted_on(group_->layout(), group_->costs());
    found.helpers = group_->helpers().describe();
    return found;
}

Result<std::string> CommunicatorImpl::describe_job() const {
    if (!group_->layout().job().empty()) return group_->layout().job();
    bootstrap::Roster roster;
    for (Rank rank = 0; rank < size(); ++rank)
        roster.endpoints.push_back(group_->directory().endpoint(rank));
    PCCL_ASSIGN_OR_RETURN(
        topo::HostTopology host,
        host_of_ranks(*options_.locality, roster, bootstrap::ranks_by_host(roster).front()));
    PCCL_ASSIGN_OR_RETURN(const topo::JobTopology job, topo::JobTopology::make({std::move(host)}));
    return encode(job);
}

void CommunicatorImpl::abort(const Status& reason) { group_->abort(reason); }

Status CommunicatorImpl::shutdown() {
    if (!check_process().is_ok()) return Status::ok();
    runtime_->unregister_rank({group_->directory().identity().group, rank()});
    const Status found = group_->leave();
    if (!found.is_ok()) log(LogLevel::kError, found.message());
    return found;
}

bool CommunicatorImpl::is_over() const { return group_->is_over(); }

Status CommunicatorImpl::health() const { return group_->health(); }

Status CommunicatorImpl::check_process() const { return group_->check_process(); }

Status CommunicatorImpl::explained(const Status& cause) const {
    return comm::explained(cause, group_->directory());
}

Result<RankStatus> CommunicatorImpl::query(Rank rank, Deadline deadline) const {
    PCCL_TRY(check_process());
    if (rank >= 0 && rank < size()) return group_->diagnosis().survey().query(rank, deadline);
    return Status::invalid_argument(
        concat("rank ", rank, " is not in group ", name(), " of ", size()));
}

Result<std::vector<SurveyedPeer>> CommunicatorImpl::survey(
    std::chrono::milliseconds answer_timeout) const {
    PCCL_TRY(check_process());
    const PeerSurvey& peers = group_->diagnosis().survey();
    return run_interruptibly(
        "pccl-survey", [this] { return group_->check_interrupt(); },
        [&](const Cancellation& cancellation) -> Result<std::vector<SurveyedPeer>> {
            std::vector<SurveyedPeer> all(static_cast<std::size_t>(size()));
            std::atomic<Rank> next{0};
            const auto query_some = [&] {
                for (Rank rank = next++; rank < size(); rank = next++)
                    all[static_cast<std::size_t>(rank)] = peers.query_with_last_sign(
                        rank, Deadline::after(answer_timeout).unless(cancellation.is_set()));
            };
            // A silent rank takes the whole time, and does not delay the others.
            std::list<BackgroundThread> helpers;
            for (int i = 1; i < std::min(size(), kSurveyedAtOnce); ++i)
                helpers.emplace_back("pccl-survey", query_some);
            query_some();
            helpers.clear();
            return all;
        });
}

}  // namespace pccl::comm
