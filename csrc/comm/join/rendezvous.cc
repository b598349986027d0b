// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/join/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/fork.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/job_exchange.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/collective/algorithm_list.h"
#include "csrc/comm/capsules/environment_capsules.h"
#include "csrc/comm/diagnosis/other_groups.h"
#include "csrc/comm/join/join_options.h"
#include "csrc/comm/phase/phase_network.h"
#include "csrc/comm/selection/tuning.h"
#include "csrc/costs/host_ways.h"
#include "csrc/costs/kept_costs.h"
#include "csrc/runtime/runtime.h"
#include "csrc/sys/host.h"
#include "csrc/transport/control/echoes.h"

namespace pccl::comm {
namespace {

/// Warns, on rank 0 for all ranks, about requested names for which a capsule must still be loaded.
/// A single rank needs no algorithm, and does not load the capsules that groups get from the
/// environment.
void warn_about_unknown_algorithms(const CommunicatorImplOptions& options,
                                   const schedule::Catalogue& catalogue) {
    const bool has_all = options.size > 1 || process_config().capsules.empty();
    if (options.rank != 0 || !has_all) return;
    for (const std::string& line : unknown_algorithms(options.algorithm, catalogue))
        log(LogLevel::kWarning, "group ", options.name, ": ", line,
            "; calls raise until a capsule of that name is loaded");
}

// For a server that may belong to an earlier group, whose end looks like the end of this rank 0.
constexpr Duration kStoreTimeout = std::chrono::seconds(5);
// For rank 0 to detect that the process that had another's place has ended, and to open a new
// incarnation.
constexpr Duration kPlaceTimeout = std::chrono::seconds(5);
constexpr Duration kNextIncarnationTimeout = std::chrono::milliseconds(300);
constexpr Duration kBetweenLooks = std::chrono::milliseconds(20);

/// Returns the endpoint of a rank that failed before it could be reached.
bootstrap::Endpoint unreachable(Rank rank) {
    bootstrap::Endpoint endpoint;
    endpoint.rank = rank;
    endpoint.host = sys::host_name();
    endpoint.pid = ::getpid();
    if (const auto machine = sys::host_identity(); machine.is_ok()) endpoint.machine = *machine;
    return endpoint;
}

/// Returns a vote through the store that the group met at; null: a group of one rank.
ShmSetup::MemoryVote memory_vote(const std::shared_ptr<Store>& store) {
    constexpr const char* kKey = "pccl/no-shared-memory";
    constexpr std::size_t kLongest = 1000;
    if (store == nullptr) return {};
    return {.call_off =
                [store](const Status& why) {
                    return store->set(kKey, why.message().substr(0, kLongest));
                },
            .called_off =
                [store] {
                    const auto why = store->get(kKey, Deadline::after(Duration::zero()));
                    return why.is_ok() ? Status::unsupported(why->substr(0, kLongest))
                                       : Status::ok();
                }};
}

}  // namespace

void JoinNotice::look(Rank awaited) {
    const Duration waited = system_clock().now() - begun_;
    const int every = (options_.size + kMostReporters - 1) / kMostReporters;
    if (options_.rank % every != 0 || !notice_.is_due(waited)) return;
    std::vector<Rank> late;
    if (store_ != nullptr) late = bootstrap::unpublished(*store_, options_.size);
    if (late.empty()) late = {awaited};
    log(LogLevel::kWarning, "group ", options_.name, ": rank ", options_.rank, " of ",
        options_.size, " has waited ", in_seconds(waited), " at ", options_.store->where(), " for ",
        listed(late), " to join");
}

Rendezvous::Rendezvous(CommunicatorImplOptions options, const Cancellation& cancellation)
    : options_(std::move(options)),
      cancellation_(cancellation),
      rendezvous_{.size = options_.size,
                  .deadline = Deadline::after(options_.timeout).unless(cancellation.is_set())},
      notice_(options_) {
    if (options_.algorithm.empty()) options_.algorithm = process_config().algorithm;
    if (options_.base_store == nullptr) options_.base_store = options_.store;
    if (options_.store == nullptr) return;
    bounded_store_ = std::make_shared<bootstrap::BoundedStore>(options_.store, options_.timeout);
    bounded_store_->limit(rendezvous_.deadline);
    options_.store = bounded_store_;
}

Rendezvous::~Rendezvous() {
    leave_group();
    if (bounded_store_ != nullptr) bounded_store_->limit(Deadline::never());
}

void Rendezvous::leave_group() {
    const std::shared_ptr<Group> group = std::exchange(group_, nullptr);
    if (group == nullptr || !group->check_process().is_ok()) return;
    options_.runtime->unregister_rank({group->directory().identity().group, options_.rank});
    static_cast<void>(group->leave());
}

Result<std::shared_ptr<Group>> Rendezvous::join() {
    PCCL_TRY(make_ready());
    Status met = meet_and_connect();
    while (bootstrap::is_superseded(looked_for_another(met))) {
        leave_group();
        met = meet_and_connect();
    }
    if (!met.is_ok()) return given_up(met);
    PCCL_TRY(join_network(options_, {group_, &group_->phases()}));
    if (incarnations_) incarnations_->remove_remains();
    return std::exchange(group_, nullptr);
}

Status Rendezvous::meet_and_connect() {
    PCCL_TRY(meet());
    return group_->connect(roster_, layout_, preferences_, rendezvous_.deadline,
                           memory_vote(options_.store));
}

Status Rendezvous::given_up(const Status& met) {
    if (group_ == nullptr || !group_->directory().has_endpoints()) {
        const bool is_past_deadline = cause_of(met).code() == StatusCode::kTimeout;
        return final_error(
            is_past_deadline ? timeout_cause(*options_.runtime, options_.global_ranks, met) : met);
    }
    // Ranks that receive this rank's close reason read the full reason from the store.
    Status why = final_error(met);
    group_->end(cause_of(met));
    return why;
}

/// Checks for a new incarnation. A process of an earlier attempt that was still alive when this one
/// began may have taken the place of a process of this attempt, and have ended since. Rank 0 then
/// opens another incarnation with the new process.
Status Rendezvous::looked_for_another(const Status& met) {
    const bool is_about_ranks =
        met.code() == StatusCode::kPeerLost || met.code() == StatusCode::kMismatch;
    if (!is_about_ranks || !incarnations_) return met;
    if (options_.rank == 0) return has_come_anew(met.peer()) ? bootstrap::superseded() : met;
    const bool is_of_own_place = met.peer() == options_.rank;
    const Deadline deadline =
        rendezvous_.deadline.within(is_of_own_place ? kPlaceTimeout : kNextIncarnationTimeout);
    for (; !deadline.passed(); system_clock().sleep_for(kBetweenLooks))
        PCCL_TRY(incarnations_->check_current());
    return met;
}

bool Rendezvous::has_come_anew(Rank rank) const {
    if (rank <= 0 || rank >= options_.size) return false;
    const auto now = bootstrap::announced(*rendezvous_.pre_join, rank);
    if (!now.is_ok() || !now->failure.is_ok()) return false;
    const auto& answered = answered_.empty() ? roster_.endpoints : answered_;
    const auto other = std::ranges::find(answered, rank, &bootstrap::Endpoint::rank);
    return other != answered.end() && other->nonce != now->endpoint.nonce &&
           options_.runtime->probe(now->endpoint).is_ok();
}

Status Rendezvous::make_ready() {
    PCCL_TRY(check_options(options_));
    PCCL_ASSIGN_OR_RETURN(rendezvous_.pre_join, bootstrap::pre_join_at(options_.store));
    if (const Status own = use_this_process(options_); !own.is_ok()) return agreed(own);
    if (options_.size == 1) return Status::ok();
    auto given = environment_capsules(process_config().capsules, options_.size);
    if (!given.is_ok()) return agreed(given.status().with_context("PCCL_CAPSULES"));
    given_ = *std::move(given);
    if (options_.rank != 0) return Status::ok();
    const Status offered = offer_as_first();
    return offered.is_ok() ? offered : agreed(offered);
}

Status Rendezvous::meet() {
    roster_.endpoints = {endpoint_of(*options_.runtime, options_)};
    roster_.endpoints.front().capsules = digest_of(given_);
    if (options_.size > 1) {
        PCCL_TRY(meet_others());
    } else {
        PCCL_ASSIGN_OR_RETURN(const bootstrap::GroupIdentity identity, bootstrap::fresh_identity());
        register_rank(identity);
    }
    return choose_alike();
}

Status Rendezvous::announce() {
    PCCL_ASSIGN_OR_RETURN(own_, bootstrap::announcement_of(roster_.endpoints.front()));
    Status outcome = bootstrap::announce(*rendezvous_.pre_join, own_);
    // The connection may belong to an earlier group, which rank 0 served from another process.
    if (outcome.code() == StatusCode::kUnavailable &&
        rendezvous_.pre_join->reopen(rendezvous_.deadline).is_ok())
        outcome = bootstrap::announce(*rendezvous_.pre_join, own_);
    incarnations_.emplace(own_, rendezvous_);
    rendezvous_.incarnation = &*incarnations_;
    return outcome;
}

Status Rendezvous::meet_others() {
    rendezvous_.contemporaries =
        std::make_shared<bootstrap::Contemporaries>(options_.locality->machine);
    rendezvous_.lost = [this](std::span<const bootstrap::Endpoint> present, Rank awaited) {
        return look_for_lost(present, awaited);
    };
    rendezvous_.probe = [this](const bootstrap::Endpoint& endpoint) {
        return options_.runtime->probe(endpoint);
    };
    PCCL_TRY(announce());
    for (;;) {
        Status met = meet_in_next();
        if (bootstrap::is_superseded(met)) {
            leave_group();
        } else if (may_store_come_again(met)) {
            leave_group();
            PCCL_TRY(reopen_store(met));
        } else {
            return met;
        }
    }
}

/// Returns whether the store may return. A server of earlier groups may end before rank 0 serves
/// this one; or rank 0 has ended.
bool Rendezvous::may_store_come_again(const Status& met) const {
    return met.code() == StatusCode::kUnavailable && options_.rank != 0 &&
           rendezvous_.incarnation != nullptr && !incarnations_->counts();
}

Status Rendezvous::reopen_store(const Status& why) {
    const bool served_others = incarnations_->is_of_another_time();
    const Status again = rendezvous_.pre_join->reopen(
        served_others ? rendezvous_.deadline : rendezvous_.deadline.within(kStoreTimeout));
    return again.is_ok() ? announce() : why;
}

Status Rendezvous::meet_in_next() {
    PCCL_ASSIGN_OR_RETURN(const bootstrap::GroupIdentity identity,
                          options_.rank == 0 ? incarnations_->open() : incarnations_->next());
    return meet_in(identity);
}

Status Rendezvous::meet_in(const bootstrap::GroupIdentity& identity) {
    options_.store = incarnations_->store();
    register_rank(identity);
    rendezvous_.root = &incarnations_->root().endpoint;
    const Status met = exchange_roster();
    if (met.code() == StatusCode::kTimeout) return incarnations_->timeout_cause(met);
    PCCL_TRY(met);
    // All ranks in the roster were present after this rank had come: from now on the end of any of
    // them counts.
    rendezvous_.incarnation = nullptr;
    PCCL_TRY(bootstrap::withdraw(*rendezvous_.pre_join, options_.rank));
    return check_same_capsules(roster_.endpoints);
}

void Rendezvous::register_rank(const bootstrap::GroupIdentity& identity) {
    group_ = {new Group(*options_.runtime, identity, options_), LeaveToParent()};
    options_.runtime->register_rank({identity.group, options_.rank}, identity.secret, group_);
}

Status Rendezvous::look_for_lost(std::span<const bootstrap::Endpoint> present, Rank awaited) {
    answered_.assign(present.begin(), present.end());
    const bool is_beside = group_ != nullptr && is_among_contemporaries();
    notice_.look_in(is_beside ? options_.store : nullptr);
    notice_.look(awaited);
    PCCL_TRY(comm::look_for_lost(*options_.runtime, options_.global_ranks, awaited));
    return is_beside ? group_->peers().look_at(present) : Status::ok();
}

bool Rendezvous::is_among_contemporaries() {
    if (rendezvous_.incarnation == nullptr || incarnations_->counts()) return true;
    const bootstrap::Announcement& root = incarnations_->root();
    if (!options_.runtime->probe(root.endpoint).is_ok()) return false;
    rendezvous_.contemporaries->saw_alive(root);
    return true;
}

Status Rendezvous::exchange_roster() {
    auto met = bootstrap::exchange_roster(*options_.store, own_.endpoint, rendezvous_);
    PCCL_TRY(met.status());
    roster_ = std::move(*met);
    answered_.clear();  // the roster has all
    return Status::ok();
}

Status Rendezvous::offer_as_first() {
    PCCL_TRY(costs::check_costs_file());
    PCCL_ASSIGN_OR_RETURN(rendezvous_.tuning, load_tuning());
    // Measures the costs now, if necessary: before the other ranks are busy.
    rendezvous_.costs = costs::process_costs().text();
    rendezvous_.describe = [this](const bootstrap::Roster& met) {
        return job_on_one_host(*options_.locality, met);
    };
    return Status::ok();
}

Status Rendezvous::choose_alike() {
    PCCL_ASSIGN_OR_RETURN(preferences_,
                          preferences_of(roster_, options_.catalogue, options_.algorithm));
    if (options_.size > 1)
        preferences_.catalogue = with_capsules(options_.catalogue, given_, preferences_.tuning);
    warn_about_unknown_algorithms(options_, *preferences_.catalogue);
    return agree_on_layout();
}

Status Rendezvous::agree_on_layout() {
    const bootstrap::OwnHost own{
        .self = options_.rank,
        .locality = *options_.locality,
        .time_way = [this](const bootstrap::Roster& met) { return way_to_first(met); }};
    if (options_.size > 1)
        PCCL_TRY(bootstrap::exchange_job(*options_.store, roster_, own, rendezvous_));
    PCCL_ASSIGN_OR_RETURN(layout_, bootstrap::Layout::make(roster_));
    if (layout_->is_on_one_host()) return Status::ok();
    return bootstrap::agree_on_digest(*options_.store, layout_->digest(), options_.rank,
                                      rendezvous_);
}

std::optional<topo::HostWay> Rendezvous::way_to_first(const bootstrap::Roster& met) const {
    const bootstrap::Endpoint& first = met.endpoints.front();
    const bootstrap::GroupIdentity& identity = group_->directory().identity();
    const transport::LinkRequest request{.group = identity.group,
                                         .source = options_.rank,
                                         .destination = 0,
                                         .group_size = options_.size};
    return costs::way_between(
        {.from = options_.locality->machine,
         .to = first.machine,
         .name = first.host,
         .hosts = static_cast<int>(bootstrap::ranks_by_host(met).size()),
         .loopback_byte = preferences_.costs.tcp_byte.seconds,
         .connect = [&](Deadline deadline) -> Result<UniqueFd> {
             if (!options_.transports.has(transport::TransportKind::kTcp))
                 return Status::unavailable("the group has no TCP");
             PCCL_TRY(options_.runtime->route_to(first, transport::TransportKind::kTcp).status());
             PCCL_ASSIGN_OR_RETURN(
                 const std::string door,
                 options_.runtime->control().find_address(
                     first.address.control, first.address.links.at(transport::TransportKind::kTcp),
                     request, identity.secret, deadline));
             PCCL_ASSIGN_OR_RETURN(const sys::Address address, sys::Address::parse(door));
             if (address.is_link_local())
                 return Status::unavailable(concat(door, " is an address of one link alone"));
             return transport::connect_for_echoes({.address = address, .secret = identity.secret},
                                                  request, deadline);
         }});
}

Status Rendezvous::cause_of(const Status& met) const {
    return cancellation_.is_set() ? cancellation_.why() : met;
}

Status Rendezvous::final_error(const Status& met) const {
    return agreed(with_own_part(cause_of(met)))
        .with_context(concat("rank ", options_.rank, " cannot join group ", options_.name));
}

Status Rendezvous::agreed(const Status& why) const {
    // Remains of this attempt must not count for the next one.
    bootstrap::begin_attempt();
    if (rendezvous_.pre_join == nullptr) return why;
    if (group_ != nullptr) return bootstrap::agree_on_failure(*options_.store, why, options_.rank);
    // This rank's own settings are in order on the others: there the rank is the error.
    const Status outcome =
        why.code() == StatusCode::kInvalidArgument
            ? Status::peer_lost(options_.rank,
                                concat("rank ", options_.rank, " cannot join: ", why.message()))
            : bootstrap::as_reported(why, options_.rank);
    const auto own = bootstrap::announcement_of(unreachable(options_.rank), outcome);
    if (own.is_ok()) static_cast<void>(bootstrap::announce(*rendezvous_.pre_join, *own));
    return why;
}

Status Rendezvous::with_own_part(const Status& why) const {
    const bool misses_peer =
        why.code() == StatusCode::kPeerLost || why.code() == StatusCode::kTimeout;
    if (!misses_peer || rendezvous_.pre_join == nullptr) return why;
    const auto peer = bootstrap::announced(*rendezvous_.pre_join, why.peer());
    if (!peer.is_ok() || !peer->failure.is_ok()) return why;
    const Status way = options_.runtime->route_to(peer->endpoint, options_.transports).status();
    return way.is_ok() ? why : way.with_message(concat(way.message(), "; ", why.message()));
}

}  // namespace pccl::comm
