#include "csrc/comm/communicator.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/comm/group.h"
#include "csrc/comm/roster.h"
#include "csrc/comm/runtime.h"
#include "csrc/comm/tuning.h"

namespace pccl::comm {
namespace {

std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
    return name.data();
}

Endpoint endpoint_of(const Runtime& runtime, const CommunicatorOptions& options) {
    Endpoint endpoint;
    endpoint.rank = options.rank;
    endpoint.host = host_name();
    endpoint.pid = ::getpid();
    for (const auto& transport : runtime.transports()) {
        if (!options.transports.has(transport->kind())) continue;
        endpoint.transports = endpoint.transports | transport->kind();
        endpoint.addresses[transport->kind()] = transport->address();
    }
    return endpoint;
}

CommunicatorOptions without_runtime(CommunicatorOptions options) {
    options.runtime.reset();
    return options;
}

Status check(const CommunicatorOptions& options) {
    if (options.size < 1)
        return Status::invalid_argument(concat("a group of ", options.size, " ranks"));
    if (options.rank < 0 || options.rank >= options.size)
        return Status::invalid_argument(
            concat("rank ", options.rank, " is not in a group of ", options.size));
    if (options.size > 1 && options.store == nullptr)
        return Status::invalid_argument("a group of several ranks needs a store to meet at");
    return Status::ok();
}

template <typename T>
Result<T> joined(Result<T> result, const CommunicatorOptions& options) {
    if (result.is_ok()) return result;
    return result.status().with_context(
        concat("rank ", options.rank, " cannot join group ", options.name));
}

}  // namespace

Result<std::shared_ptr<Communicator>> Communicator::create(CommunicatorOptions options) {
    PCCL_TRY(check(options));
    if (options.runtime == nullptr) {
        PCCL_ASSIGN_OR_RETURN(options.runtime, Runtime::of_process());
    }
    Meeting meeting{.size = options.size, .deadline = Deadline::after(options.timeout)};
    meeting.lost = [&](std::span<const Endpoint>, Rank awaited) {
        if (options.interrupted) PCCL_TRY(options.interrupted());
        return options.runtime->look_for_lost(options.global_ranks, awaited);
    };
    PCCL_ASSIGN_OR_RETURN(
        const GroupIdentity identity,
        options.size == 1
            ? fresh_identity()
            : joined(agree_on_identity(*options.store, options.rank, meeting), options));
    const auto group = std::make_shared<Group>(*options.runtime, identity, options);
    options.runtime->enroll(identity.group, identity.secret, group);
    // From here on the destructor dismisses the group again.
    std::shared_ptr<Communicator> comm(new Communicator(options, group));
    Roster roster{.endpoints = {endpoint_of(*options.runtime, options)}, .tuning = {}};
    const auto fail = [&](const Status& why) {
        const Status agreed = options.store ? agree_on_failure(*options.store, why) : why;
        return joined(Result<std::shared_ptr<Communicator>>(agreed), options);
    };
    if (options.size > 1) {
        if (options.rank == 0) meeting.tuning = load_tuning();
        meeting.lost = [&, of_job = meeting.lost](std::span<const Endpoint> present, Rank awaited) {
            PCCL_TRY(of_job(present, awaited));
            return group->look_at(present);
        };
        auto met = exchange_roster(*options.store, roster.endpoints[0], meeting);
        if (!met.is_ok()) return fail(met.status());
        roster = std::move(*met);
    }
    if (const Status met = group->register_remote_infos(roster, meeting.deadline); !met.is_ok())
        return fail(met);
    return comm;
}

Communicator::Communicator(const CommunicatorOptions& options, std::shared_ptr<Group> group)
    : options_(without_runtime(options)),
      runtime_(options.runtime),
      group_(std::move(group)),
      memory_({.rank = options.rank, .size = options.size, .store = options.store}) {}

Communicator::~Communicator() { shutdown(); }

Rank Communicator::rank() const { return group_->rank(); }
int Communicator::size() const { return group_->size(); }
const std::string& Communicator::name() const { return group_->name(); }
std::chrono::milliseconds Communicator::timeout() const { return group_->timeout(); }
void Communicator::set_timeout(std::chrono::milliseconds timeout) { group_->set_timeout(timeout); }
std::uint64_t Communicator::sequence() const { return group_->sequence(); }

Status Communicator::run(const Collective& collective, OptionalTimeout timeout) {
    return group_->run(collective, timeout);
}

Result<Event> Communicator::submit(const Collective& collective, OptionalTimeout timeout) {
    return group_->submit(collective, timeout);
}

Result<Event> Communicator::send(Rank peer, std::int32_t tag, std::span<const std::byte> bytes,
                                 OptionalTimeout timeout) {
    return group_->post({.direction = MessageOperation::Direction::kSend,
                         .self = rank(),
                         .peer = peer,
                         .tag = tag,
                         .data = const_cast<std::byte*>(bytes.data()),
                         .bytes = bytes.size()},
                        timeout);
}

Result<Event> Communicator::receive(Rank peer_or_any, std::int32_t tag, std::span<std::byte> bytes,
                                    OptionalTimeout timeout) {
    return group_->post({.direction = MessageOperation::Direction::kReceive,
                         .self = rank(),
                         .peer = peer_or_any,
                         .tag = tag,
                         .data = bytes.data(),
                         .bytes = bytes.size()},
                        timeout);
}

Status Communicator::barrier(OptionalTimeout timeout) {
    std::byte token{1};
    const Block block{&token, 1};
    return run({.kind = CollectiveKind::kAllReduce,
                .type = DataType::kUint8,
                .op = ReduceOp::kMax,
                .inputs = {&block, 1},
                .outputs = {&block, 1}},
               timeout);
}

Status Communicator::monitored_barrier(std::chrono::milliseconds timeout, bool wait_all) {
    return monitored_barrier_on(*this, timeout, wait_all);
}

Result<std::span<std::byte>> Communicator::get_operator_space(const std::string& name,
                                                              std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(const auto space, memory_.allocate_workspace(name, bytes));
    PCCL_TRY(memory_.wait_workspace(name, Deadline::after(timeout())));
    return space;
}

Result<std::vector<Prediction>> Communicator::explain(CollectiveKind kind,
                                                      std::size_t bytes) const {
    return group_->explain(kind, bytes);
}

void Communicator::abort(const Status& reason) { group_->abort(reason); }

void Communicator::shutdown() {
    runtime_->dismiss(group_->id());
    group_->abort(Status::aborted(concat("group ", name(), " was shut down")));
}

Status Communicator::health() const { return group_->health(); }

Result<Situation> Communicator::ask(Rank rank, Deadline deadline) const {
    if (rank >= 0 && rank < size()) return group_->ask(rank, deadline);
    return Status::invalid_argument(
        concat("rank ", rank, " is not in group ", name(), " of ", size()));
}

}  // namespace pccl::comm
