// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/communicator.h"

#include <utility>

#include <pccl/communicator.h>
#include "csrc/capsule/capsule_file.h"
#include "csrc/transport/transport_flags.h"

namespace pccl {
namespace {

using comm::RankStatus;

Result<comm::CommunicatorImplOptions> communicator_options(const CommunicatorOptions& options) {
    auto transports = transport::TransportFlags::all();
    if (!options.transports.empty()) {
        PCCL_ASSIGN_OR_RETURN(transports, transport::TransportFlags::parse(options.transports));
    }
    return comm::CommunicatorImplOptions{.rank = options.rank,
                                         .size = options.size,
                                         .store = options.store,
                                         .name = options.name,
                                         .timeout = options.timeout,
                                         .transports = transports,
                                         .algorithm = options.algorithm,
                                         .interrupted = options.interrupted};
}

PredictedAlgorithm public_prediction(const Prediction& prediction) {
    return {.algorithm = std::string(prediction.algorithm()),
            .over = std::string(prediction.over()),
            .seconds = prediction.seconds,
            .messages = prediction.messages,
            .busiest = prediction.busiest,
            .is_chosen = prediction.is_chosen,
            .chosen_by = std::string(prediction.chosen_by)};
}

PeerHealth::State public_state(comm::SurveyedPeer::Liveness state) {
    switch (state) {
        case comm::SurveyedPeer::Liveness::kHere:
            return PeerHealth::State::kHere;
        case comm::SurveyedPeer::Liveness::kSilent:
            return PeerHealth::State::kSilent;
        case comm::SurveyedPeer::Liveness::kGone:
            break;
    }
    return PeerHealth::State::kGone;
}

PeerHealth public_health(const comm::SurveyedPeer& health) {
    const RankStatus& answer = health.rank_status;
    return {.rank = health.rank,
            .state = public_state(health.state),
            .detail = health.detail,
            .sequence = answer.sequence,
            .operation = answer.operation,
            .awaited = answer.awaited,
            .last_sign = health.last_sign};
}

/// Loads a file, which may be an error: every rank takes part.
Result<Capsule> load_file(comm::CommunicatorImpl& group, const Result<capsule::CapsuleFile>& file,
                          const std::optional<std::string>& sizes, OptionalTimeout limit) {
    PCCL_ASSIGN_OR_RETURN(const capsule::VerifiedCapsule loaded, group.load(file, sizes, limit));
    return Capsule(std::make_shared<const capsule::CapsuleFile>(loaded));
}

}  // namespace

Communicator::Communicator(std::shared_ptr<comm::CommunicatorImpl> group)
    : group_(std::move(group)) {}
Communicator::~Communicator() = default;

Result<std::shared_ptr<Communicator>> Communicator::create(const CommunicatorOptions& options) {
    PCCL_ASSIGN_OR_RETURN(const comm::CommunicatorImplOptions internal,
                          communicator_options(options));
    PCCL_ASSIGN_OR_RETURN(auto group, comm::CommunicatorImpl::create(internal));
    return std::shared_ptr<Communicator>(new Communicator(std::move(group)));
}

Rank Communicator::rank() const { return group_->rank(); }
int Communicator::size() const { return group_->size(); }
const std::string& Communicator::name() const { return group_->name(); }
const std::shared_ptr<Store>& Communicator::store() const { return group_->store(); }
std::chrono::milliseconds Communicator::timeout() const { return group_->timeout(); }
void Communicator::set_timeout(std::chrono::milliseconds timeout) { group_->set_timeout(timeout); }
std::uint64_t Communicator::sequence() const { return group_->sequence(); }

Status Communicator::run(const Collective& collective, OptionalTimeout timeout) {
    return group_->run(collective, timeout);
}

Status Communicator::check_call(const Collective& collective) const {
    return group_->check_call(collective);
}

Result<Event> Communicator::submit(const Collective& collective, OptionalTimeout timeout) {
    return group_->submit(collective, timeout);
}

Result<Event> Communicator::send(Rank peer, std::int32_t tag, std::span<const std::byte> bytes,
                                 const MessageOptions& options) {
    return group_->send(peer, tag, bytes, options);
}

Result<Event> Communicator::receive(Rank peer_or_any, std::int32_t tag, std::span<std::byte> bytes,
                                    const MessageOptions& options) {
    return group_->receive(peer_or_any, tag, bytes, options);
}

Status Communicator::barrier(OptionalTimeout timeout) { return group_->barrier(timeout); }

Status Communicator::monitored_barrier(std::chrono::milliseconds timeout, bool wait_all) {
    return group_->monitored_barrier(timeout, wait_all);
}

Result<std::span<std::byte>> Communicator::allocate_on_all_ranks(const std::string& name,
                                                                 std::size_t bytes,
                                                                 OptionalTimeout limit) {
    return group_->allocate_on_all_ranks(name, bytes, limit);
}

Result<std::span<std::byte>> Communicator::allocate_workspace(const std::string& name,
                                                              std::size_t bytes) {
    return group_->memory().allocate_workspace(name, bytes);
}

Status Communicator::wait_workspace(const std::string& name, Deadline deadline) {
    return group_->memory().wait_workspace(name, deadline);
}

Result<std::span<std::byte>> Communicator::map_remote(const std::string& name, Rank rank) {
    return group_->memory().map_remote(name, rank);
}

Result<HeldMemory> Communicator::hold_remote(const std::string& name, Rank rank) {
    PCCL_ASSIGN_OR_RETURN(comm::MappedMemory held, group_->memory().hold(name, rank));
    return HeldMemory{.memory = held.memory, .holder = std::move(held.holder)};
}

std::map<std::string, std::size_t> Communicator::workspaces() const {
    return group_->memory().sizes();
}

Status Communicator::release_workspace(const std::string& name) {
    return group_->memory().release(name);
}

Result<std::vector<PredictedAlgorithm>> Communicator::explain(CollectiveKind kind,
                                                              std::size_t bytes) const {
    PCCL_ASSIGN_OR_RETURN(const auto predictions, group_->explain(kind, bytes));
    std::vector<PredictedAlgorithm> all;
    all.reserve(predictions.size());
    for (const Prediction& each : predictions) all.push_back(public_prediction(each));
    return all;
}

Result<Capsule> Communicator::load(const std::string& path, const std::optional<std::string>& sizes,
                                   OptionalTimeout limit) {
    return load_file(*group_, capsule::CapsuleFile::read(path), sizes, limit);
}

Result<Capsule> Communicator::load(const Capsule& capsule, const std::optional<std::string>& sizes,
                                   OptionalTimeout limit) {
    return load_file(*group_, capsule.file(), sizes, limit);
}

Result<Capsule> Communicator::load_bytes(std::string bytes, const std::optional<std::string>& sizes,
                                         OptionalTimeout limit) {
    return load_file(*group_, capsule::CapsuleFile::parse(std::move(bytes)), sizes, limit);
}

Status Communicator::unload(const std::string& name, OptionalTimeout limit) {
    return group_->unload(name, limit);
}

std::vector<std::string> Communicator::loaded() const {
    std::vector<std::string> names;
    for (const auto& source : group_->loaded()) names.emplace_back(source->name);
    return names;
}

Result<std::shared_ptr<Communicator>> Communicator::shrink(std::span<const Rank> excluded,
                                                           const ShrinkOptions& wanted) const {
    PCCL_ASSIGN_OR_RETURN(auto group, group_->shrink(excluded, wanted));
    return std::shared_ptr<Communicator>(new Communicator(std::move(group)));
}

Result<std::shared_ptr<Communicator>> Communicator::shrink(const ShrinkOptions& wanted) const {
    PCCL_ASSIGN_OR_RETURN(auto group, group_->shrink(wanted));
    return std::shared_ptr<Communicator>(new Communicator(std::move(group)));
}

Result<std::vector<Rank>> Communicator::missing() const { return group_->missing(); }

Result<std::shared_ptr<Communicator>> Communicator::split(std::optional<int> color, int key,
                                                          OptionalTimeout limit) {
    PCCL_ASSIGN_OR_RETURN(auto group, group_->split(color, key, limit));
    if (group == nullptr) return std::shared_ptr<Communicator>();
    return std::shared_ptr<Communicator>(new Communicator(std::move(group)));
}

void Communicator::abort(const Status& reason) { group_->abort(reason); }
Status Communicator::shutdown() { return group_->shutdown(); }
bool Communicator::is_over() const { return group_->is_over(); }
Status Communicator::health() const { return group_->health(); }
Status Communicator::check_process() const { return group_->check_process(); }

Result<std::vector<PeerHealth>> Communicator::survey(
    std::chrono::milliseconds answer_timeout) const {
    PCCL_ASSIGN_OR_RETURN(const auto found, group_->survey(answer_timeout));
    std::vector<PeerHealth> all;
    all.reserve(found.size());
    for (const comm::SurveyedPeer& each : found) all.push_back(public_health(each));
    return all;
}

}  // namespace pccl
