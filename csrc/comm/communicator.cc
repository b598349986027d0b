#include "csrc/comm/communicator.h"

#include <unistd.h>

#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/listed.h"
#include "csrc/base/log.h"
#include "csrc/base/text.h"
#include "csrc/base/wait_notice.h"
#include "csrc/bootstrap/job_exchange.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/collective/algorithm_list.h"
#include "csrc/comm/diagnosis/explained.h"
#include "csrc/comm/diagnosis/other_groups.h"
#include "csrc/comm/given_capsules.h"
#include "csrc/comm/group.h"
#include "csrc/comm/members.h"
#include "csrc/comm/phase/phase_network.h"
#include "csrc/comm/selection/tuning.h"
#include "csrc/costs/kept_costs.h"
#include "csrc/runtime/runtime.h"

namespace pccl::comm {
namespace {

bootstrap::Endpoint endpoint_of(const runtime::Runtime& runtime,
                                const CommunicatorOptions& options) {
    bootstrap::Endpoint endpoint;
    endpoint.rank = options.rank;
    endpoint.host = options.locality->host;
    endpoint.machine = options.locality->machine;
    endpoint.numa = options.locality->numa;
    endpoint.gpu = options.gpu;
    endpoint.pid = ::getpid();
    endpoint.address.control = runtime.control().address();
    for (const auto& transport : runtime.transports()) {
        if (!options.transports.has(transport->kind())) continue;
        endpoint.transports = endpoint.transports | transport->kind();
        endpoint.address.links[transport->kind()] = transport->addresses();
    }
    return endpoint;
}

CommunicatorOptions without_runtime(CommunicatorOptions options) {
    options.runtime.reset();
    return options;
}

Status check_network(const CommunicatorOptions& options) {
    if (options.network == nullptr || !options.switches_phases ||
        options.size == options.network->ranks())
        return Status::ok();
    return Status::invalid_argument(concat("a cluster of ", options.network->ranks(),
                                           " devices for a group of ", options.size,
                                           " ranks: give each rank a device"));
}

Status check(const CommunicatorOptions& options) {
    if (options.size < 1)
        return Status::invalid_argument(concat("a group of ", options.size, " ranks"));
    if (options.rank < 0 || options.rank >= options.size)
        return Status::invalid_argument(
            concat("rank ", options.rank, " is not in a group of ", options.size));
    if (options.size > 1 && options.store == nullptr)
        return Status::invalid_argument("a group of several ranks needs a store to meet at");
    PCCL_TRY(check_network(options));
    return check_algorithm_list(options.algorithm);
}

/// Rank 0 says for all which names a capsule must still be loaded for. A rank alone needs no
/// algorithm, and knows none of the capsules that are given to groups.
void tell_of_unknown_algorithms(const CommunicatorOptions& options,
                                const schedule::Catalogue& catalogue) {
    const bool knows_all = options.size > 1 || process_config().capsules.empty();
    if (options.rank != 0 || !knows_all) return;
    for (const std::string& line : unknown_algorithms(options.algorithm, catalogue))
        log(LogLevel::kWarning, "group ", options.name, ": ", line,
            "; calls raise until a capsule of that name is loaded");
}

/// Takes the runtime and the place of this process where the options name none.
Status use_this_process(CommunicatorOptions& options) {
    if (!options.gpu.empty()) {
        PCCL_ASSIGN_OR_RETURN(options.gpu, bootstrap::bus_id_of(options.gpu));
    }
    if (options.runtime == nullptr) {
        PCCL_ASSIGN_OR_RETURN(options.runtime, runtime::Runtime::of_process());
    }
    if (options.locality == nullptr) {
        PCCL_ASSIGN_OR_RETURN(auto own, bootstrap::Locality::of_process());
        options.locality = std::make_shared<const bootstrap::Locality>(std::move(own));
    }
    return Status::ok();
}

/// Says on stderr whom this rank waits for while it joins; of many ranks, some all over the job do.
class JoinNotice {
   public:
    explicit JoinNotice(const CommunicatorOptions& options) : options_(options) {}

    /// To be called once this rank has its own word in `room`.
    void look_in(std::shared_ptr<bootstrap::Store> room) { room_ = std::move(room); }
    void look(Rank awaited) {
        const Duration waited = system_clock().now() - begun_;
        if (options_.rank % every_ != 0 || !notice_.is_due(waited)) return;
        std::vector<Rank> late;
        if (room_ != nullptr) late = bootstrap::unpublished(*room_, options_.size);
        if (late.empty()) late = {awaited};
        log(LogLevel::kWarning, "group ", options_.name, ": rank ", options_.rank, " of ",
            options_.size, " has waited ", in_seconds(waited), " at ", options_.store->where(),
            " for ", listed(late), " to join");
    }

   private:
    static constexpr int kMostThatSaySo = 16;

    const CommunicatorOptions& options_;
    const int every_ = (options_.size + kMostThatSaySo - 1) / kMostThatSaySo;
    const TimePoint begun_ = system_clock().now();
    std::shared_ptr<bootstrap::Store> room_;
    WaitNotice notice_;
};

Result<bootstrap::GroupIdentity> identify(const bootstrap::Endpoint& own,
                                          const bootstrap::Meeting& meeting) {
    if (meeting.size == 1) return bootstrap::fresh_identity();
    PCCL_TRY(bootstrap::announce(*meeting.lobby, own));
    return bootstrap::agree_on_identity(*meeting.lobby, own.rank, meeting);
}

/// Ranks on several hosts check that they lay schedules out alike; those of one host have it from
/// one roster.
Result<std::shared_ptr<const bootstrap::Layout>> agree_on_layout(
    bootstrap::Roster& roster, const CommunicatorOptions& options,
    const bootstrap::Meeting& meeting) {
    if (options.size > 1)
        PCCL_TRY(bootstrap::exchange_job(*options.store, roster, *options.locality, options.rank,
                                         meeting));
    PCCL_ASSIGN_OR_RETURN(auto layout, bootstrap::Layout::make(roster));
    if (!layout->is_on_one_host())
        PCCL_TRY(
            bootstrap::agree_on_digest(*options.store, layout->digest(), options.rank, meeting));
    return layout;
}

/// Whom this rank has no way to may be there all the same: then it has lost its network.
Status with_own_part(const Status& why, const CommunicatorOptions& options,
                     const bootstrap::Meeting& meeting) {
    const bool misses_peer =
        why.code() == StatusCode::kPeerLost || why.code() == StatusCode::kTimeout;
    if (!misses_peer || meeting.lobby == nullptr) return why;
    const auto peer = bootstrap::announced(*meeting.lobby, why.peer());
    if (!peer.is_ok()) return why;
    const Status way = options.runtime->way_to(*peer, options.transports).status();
    return way.is_ok() ? why : way.with_message(concat(way.message(), "; ", why.message()));
}

template <typename T>
Result<T> joined(Result<T> result, const CommunicatorOptions& options) {
    if (result.is_ok()) return result;
    return result.status().with_context(
        concat("rank ", options.rank, " cannot join group ", options.name));
}

}  // namespace

Result<std::shared_ptr<Communicator>> Communicator::create(const CommunicatorOptions& options) {
    if (!options.interrupted) return meet(options, Cancellation());
    return run_interruptibly(
        "pccl-meet", options.interrupted,
        [&options](const Cancellation& cancellation) { return meet(options, cancellation); });
}

Result<std::shared_ptr<Communicator>> Communicator::meet(CommunicatorOptions options,
                                                         const Cancellation& cancellation) {
    if (options.algorithm.empty()) options.algorithm = process_config().algorithm;
    PCCL_TRY(check(options));
    bootstrap::Meeting meeting{
        .size = options.size,
        .deadline = Deadline::after(options.timeout).unless(cancellation.is_set())};
    PCCL_ASSIGN_OR_RETURN(meeting.lobby, bootstrap::lobby_at(options.store));
    const auto agreed = [&](const Status& why) {
        return meeting.lobby ? bootstrap::agree_on_failure(*meeting.lobby, why, options.rank) : why;
    };
    if (const Status own = use_this_process(options); !own.is_ok()) return agreed(own);
    // Where they are measured, now: before the other ranks have anything to do.
    if (options.rank == 0 && options.size > 1) static_cast<void>(costs::process_costs());
    std::vector<capsule::Capsule> given;
    if (options.size > 1) given = given_capsules(process_config().capsules, options.size);
    JoinNotice notice(options);
    meeting.lost = [&](std::span<const bootstrap::Endpoint>, Rank awaited) {
        notice.look(awaited);
        return look_for_lost(*options.runtime, options.global_ranks, awaited);
    };
    meeting.probe = [&](const bootstrap::Endpoint& endpoint) {
        return options.runtime->probe(endpoint);
    };
    bootstrap::Endpoint own = endpoint_of(*options.runtime, options);
    own.capsules = digest_of(given);
    // Who is interrupted looks as if the time had passed.
    const auto cause = [&](const Status& met) {
        return cancellation.is_set() ? cancellation.why() : met;
    };
    const auto fail = [&](const Status& met) {
        const Status why = agreed(with_own_part(cause(met), options, meeting));
        return joined(Result<std::shared_ptr<Communicator>>(why), options);
    };
    const auto miss = [&](const Status& met) {
        const bool is_late = cause(met).code() == StatusCode::kTimeout;
        return fail(is_late ? why_late(*options.runtime, options.global_ranks, met) : met);
    };
    const auto identified = identify(own, meeting);
    if (!identified.is_ok()) return miss(identified.status());
    const bootstrap::GroupIdentity& identity = *identified;
    options.store = bootstrap::room_at(meeting.lobby, identity);
    notice.look_in(options.store);
    const std::shared_ptr<Group> group(new Group(*options.runtime, identity, options),
                                       LeaveToParent());
    options.runtime->enroll({identity.group, options.rank}, identity.secret, group);
    // From here on the destructor dismisses the group again.
    std::shared_ptr<Communicator> comm(new Communicator(options, group));
    bootstrap::Roster roster{.endpoints = {own}, .tuning = {}, .costs = {}, .job = {}};
    if (options.size > 1) {
        if (options.rank == 0) {
            meeting.tuning = load_tuning();
            meeting.costs = costs::process_costs().text();
            meeting.describe = [&](const bootstrap::Roster& met) {
                return job_on_one_host(*options.locality, met);
            };
        }
        meeting.lost = [&, of_job = meeting.lost](std::span<const bootstrap::Endpoint> present,
                                                  Rank awaited) {
            PCCL_TRY(of_job(present, awaited));
            return group->peers().look_at(present);
        };
        auto met = bootstrap::exchange_roster(*options.store, roster.endpoints[0], meeting);
        if (!met.is_ok()) return miss(met.status());
        roster = std::move(*met);
        if (const Status same = check_same_capsules(roster.endpoints); !same.is_ok())
            return miss(same);
    }
    auto preferences = preferences_of(roster, options.catalogue, options.algorithm);
    if (!preferences.is_ok()) return miss(preferences.status());
    if (options.size > 1)
        preferences->catalogue = with_capsules(options.catalogue, given, preferences->tuning);
    tell_of_unknown_algorithms(options, *preferences->catalogue);
    auto layout = agree_on_layout(roster, options, meeting);
    if (!layout.is_ok()) return miss(layout.status());
    if (const Status met = group->register_remote_infos(roster, *std::move(layout), *preferences,
                                                        meeting.deadline);
        !met.is_ok()) {
        // Those who hear from this rank that it leaves look into the store for the reason.
        auto failed = fail(met);
        group->end(cause(met));
        return failed;
    }
    PCCL_TRY(join_network(options, {group, &group->phases()}));
    return comm;
}

Communicator::Communicator(const CommunicatorOptions& options, std::shared_ptr<Group> group)
    : options_(without_runtime(options)),
      runtime_(options.runtime),
      group_(std::move(group)),
      memory_({.rank = options.rank, .size = options.size, .store = options.store}) {}

Communicator::~Communicator() { static_cast<void>(shutdown()); }

Rank Communicator::rank() const { return group_->rank(); }
int Communicator::size() const { return group_->size(); }
const std::string& Communicator::name() const { return group_->name(); }
std::chrono::milliseconds Communicator::timeout() const { return group_->timeout(); }
void Communicator::set_timeout(std::chrono::milliseconds timeout) { group_->set_timeout(timeout); }
std::uint64_t Communicator::sequence() const { return group_->sequence(); }

Status Communicator::check_call(const Collective& collective) const {
    return group_->check_call(collective);
}

Status Communicator::run(const Collective& collective, OptionalTimeout timeout) {
    return group_->run(collective, timeout);
}

Result<runtime::Event> Communicator::submit(const Collective& collective, OptionalTimeout timeout) {
    return group_->submit(collective, timeout);
}

Result<runtime::Event> Communicator::send(Rank peer, std::int32_t tag,
                                          std::span<const std::byte> bytes,
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

Result<runtime::Event> Communicator::receive(Rank peer_or_any, std::int32_t tag,
                                             std::span<std::byte> bytes,
                                             const MessageOptions& options) {
    return group_->post({.direction = MessageOperation::Direction::kReceive,
                         .self = rank(),
                         .peer = peer_or_any,
                         .tag = tag,
                         .data = bytes.data(),
                         .bytes = bytes.size(),
                         .type = options.type},
                        options);
}

Status Communicator::barrier(OptionalTimeout timeout) {
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

Status Communicator::monitored_barrier(std::chrono::milliseconds timeout, bool wait_all) {
    return monitored_barrier_on(*this, timeout, wait_all);
}

Result<std::vector<Prediction>> Communicator::explain(CollectiveKind kind,
                                                      std::size_t bytes) const {
    PCCL_TRY(check_process());
    return group_->selector()->explain(kind, block_bytes(kind, bytes, size()));
}

Status Communicator::record_timeline(std::size_t most) {
    PCCL_TRY(check_process());
    if (most > Timeline::kMostSteps)
        return Status::invalid_argument(concat("a timeline of ", most, " steps; at most ",
                                               Timeline::kMostSteps, " are recorded"));
    group_->timeline()->start(most);
    return Status::ok();
}

Result<TimedSteps> Communicator::take_timeline() {
    PCCL_TRY(check_process());
    return group_->timeline()->take();
}

bootstrap::LinksCountedOn Communicator::links_counted_on() const {
    return counted_on(group_->layout(), group_->costs());
}

Result<std::string> Communicator::describe_job() const {
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

void Communicator::abort(const Status& reason) { group_->abort(reason); }

Status Communicator::shutdown() {
    if (!check_process().is_ok()) return Status::ok();
    runtime_->dismiss({group_->directory().identity().group, rank()});
    const Status found = group_->leave();
    if (!found.is_ok()) log(LogLevel::kError, found.message());
    return found;
}

Status Communicator::health() const { return group_->health(); }

Status Communicator::check_process() const { return group_->check_process(); }

Status Communicator::explained(const Status& cause) const {
    return comm::explained(cause, group_->directory());
}

Result<Situation> Communicator::ask(Rank rank, Deadline deadline) const {
    PCCL_TRY(check_process());
    if (rank >= 0 && rank < size()) return group_->diagnosis().survey().ask(rank, deadline);
    return Status::invalid_argument(
        concat("rank ", rank, " is not in group ", name(), " of ", size()));
}

Result<std::vector<PeerHealth>> Communicator::survey(std::chrono::milliseconds patience) const {
    PCCL_TRY(check_process());
    std::vector<PeerHealth> all;
    all.reserve(static_cast<std::size_t>(size()));
    for (Rank rank = 0; rank < size(); ++rank)
        all.push_back(group_->diagnosis().survey().health_of(rank, Deadline::after(patience)));
    return all;
}

}  // namespace pccl::comm
