// SPDX-License-Identifier: Apache-2.0

// Launches of a group of GPUs.
#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/collective/algorithm_list.h"
#include "csrc/collective/geometry.h"
#include "csrc/device/device_group.h"
#include "csrc/device/gpu_path.h"
#include "csrc/device/launch/lowering.h"
#include "csrc/device/launch/pcie_schedules.h"

namespace pccl::device {
namespace {

using sys::cuda::DeviceAddress;

DeviceAddress address_of(const void* pointer) { return std::bit_cast<DeviceAddress>(pointer); }

void replace(std::span<const Block> staged, std::byte* (&places)[abi::kMostDevices]) {
    for (std::size_t i = 0; i < staged.size(); ++i) places[i] = staged[i].data;
}
void replace(std::span<const Block> staged, const std::byte* (&places)[abi::kMostDevices]) {
    for (std::size_t i = 0; i < staged.size(); ++i) places[i] = staged[i].data;
}

bool is_by_all_to_all(CollectiveKind kind) {
    return kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kGather ||
           kind == CollectiveKind::kScatter;
}

/// Takes a round of messages from the front of `left`, at most one to each rank.
std::vector<PeerMessage> take_round(std::vector<PeerMessage>& left) {
    std::vector<PeerMessage> round;
    std::vector<PeerMessage> later;
    for (const PeerMessage& message : left) {
        const bool is_taken = std::ranges::any_of(
            round, [&](const PeerMessage& other) { return other.peer == message.peer; });
        (is_taken ? later : round).push_back(message);
    }
    left = std::move(later);
    return round;
}

std::vector<PeerMessage> not_empty(std::span<const PeerMessage> messages) {
    std::vector<PeerMessage> found;
    std::ranges::copy_if(messages, std::back_inserter(found),
                         [](const PeerMessage& message) { return message.bytes > 0; });
    return found;
}

Status check_messages(std::span<const PeerMessage> messages, int ranks) {
    for (const PeerMessage& message : messages) {
        if (message.peer < 0 || message.peer >= ranks)
            return Status::invalid_argument(
                concat("rank ", message.peer, " is not in a group of ", ranks));
        if (message.data == nullptr && message.bytes > 0)
            return Status::invalid_argument("a message without memory");
    }
    return Status::ok();
}

/// Returns the blocks of each message: enough to fill NVLink from one rank to another, while there
/// is room for all messages.
int blocks_for(std::span<const PeerMessage> sends, int most_blocks,
               const kernels::Thresholds::Messages& thresholds) {
    std::size_t longest = 0;
    for (const PeerMessage& message : sends) longest = std::max(longest, message.bytes);
    const int room = most_blocks / std::max(1, static_cast<int>(sends.size()));
    const auto wanted = std::min(longest / thresholds.bytes_of_block, thresholds.most_blocks);
    return std::clamp(static_cast<int>(wanted), 1, std::max(1, room));
}

std::size_t bytes_of(std::span<const PeerMessage> messages) {
    std::size_t sum = 0;
    for (const PeerMessage& message : messages) sum += message.bytes;
    return sum;
}

}  // namespace

std::unique_lock<std::mutex> DeviceGroupImpl::enter(
    std::optional<std::chrono::milliseconds> timeout) {
    std::unique_lock lock(mutex_);
    using std::chrono::milliseconds;
    const milliseconds longest = std::clamp(timeout.value_or(timeout_.load()), milliseconds(0),
                                            milliseconds(std::chrono::years(1)));
    team_.timeout_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(longest).count());
    return lock;
}

void DeviceGroupImpl::log(std::span<const Collective> collectives, kernels::Stream stream,
                          const DeviceLaunch& wanted) {
    team_.ticket = log_->begin(collectives, is_captured(stream));
    team_.call = log_->call();
    team_.fingerprint = launch_fingerprint(collectives, wanted, loaded_.digest());
}

void DeviceGroupImpl::log(const MessageExchange& messages, kernels::Stream stream) {
    const bool is_sending = !messages.sends.empty();
    const PeerMessage& first = is_sending ? messages.sends.front() : messages.receives.front();
    team_.ticket = log_->begin(
        {.kind = is_sending ? runtime::FlightKind::kSend : runtime::FlightKind::kReceive,
         .first = {.peer = first.peer, .bytes = first.bytes},
         .count = messages.sends.size() + messages.receives.size(),
         .sent = bytes_of(messages.sends),
         .received = bytes_of(messages.receives)},
        is_captured(stream));
}

Status DeviceGroupImpl::result_of(Status outcome) {
    const bool is_refused = outcome.code() == StatusCode::kInvalidArgument ||
                            outcome.code() == StatusCode::kUnsupported;
    if (is_refused) {
        log_->refuse(team_.ticket, outcome);
        return outcome;
    }
    log_->end(team_.ticket, outcome);
    if (outcome.is_ok()) return outcome;
    end(outcome);
    return health();
}

Status DeviceGroupImpl::launch(const Collective& collective, kernels::Stream stream,
                               const DeviceLaunch& wanted) {
    PCCL_TRY(check_process());
    const auto lock = enter(wanted.timeout);
    log({&collective, 1}, stream, wanted);
    return result_of(launch_alone(collective, stream, wanted));
}

Status DeviceGroupImpl::launch_alone(const Collective& collective, kernels::Stream stream,
                                     const DeviceLaunch& wanted) {
    PCCL_TRY(check_shape(collective, options_.rank, options_.size));
    PCCL_ASSIGN_OR_RETURN(const auto source, schedule_for(collective, wanted));
    if (source != nullptr) return launch_schedule(collective, source, stream, wanted);
    if (gpus_.are_over_pcie()) return launch_over_pcie(collective, stream, wanted);
    const auto phases = two_phases(collective, wanted, gpus_);
    if (!phases) return launch_one(collective, stream, wanted);
    PCCL_TRY(launch_one(phases->reduce_scatter(collective, options_.rank), stream, {}));
    return launch_one(phases->all_gather(collective, options_.rank), stream, {});
}

Status DeviceGroupImpl::launch_one(const Collective& collective, kernels::Stream stream,
                                   const DeviceLaunch& wanted) {
    DeviceLaunch how = wanted;
    how.preferences = preferences_;
    PCCL_ASSIGN_OR_RETURN(kernels::Launch launch, lower(collective, how, options_.rank, gpus_));
    if (is_nothing(collective)) return Status::ok();
    if (options_.size == 1 && !wanted.plan) return copy_alone(collective, stream);
    PCCL_TRY(why_over());
    launch.team = team_;
    if (launch.plan.protocol == kernels::Protocol::kLL)
        return launch_in_order(stream, launch.plan,
                               [&] { return launch_kernel_of(collective.kind, launch, stream); });
    if (is_pulled(collective, launch.plan)) return pull(collective, launch, stream);
    return launch_shared(collective, launch, stream);
}

Result<schedule::SourcePtr> DeviceGroupImpl::schedule_for(const Collective& collective,
                                                          const DeviceLaunch& wanted) const {
    const bool is_wanted = wanted.schedule != nullptr;
    if (options_.size == 1 || (wanted.plan && !is_wanted)) return schedule::SourcePtr();
    const bool is_possible = takes_schedules(collective);
    if (is_wanted && !is_possible)
        return Status::unsupported(
            "a schedule for blocks of several lengths, or of lengths that "
            "only some ranks have");
    if (is_wanted || !is_possible) return wanted.schedule;
    // Programs would wrap them (launch_program()); the kernels do not.
    if (averages_integers(collective)) return schedule::SourcePtr();
    const std::string_view preferred = algorithm_listed(algorithms_, collective.kind);
    if (preferred.empty()) return loaded_.find(collective);
    return catalogue_->find(preferred, collective.kind);
}

void DeviceGroupImpl::choose_from(std::shared_ptr<const schedule::Catalogue> catalogue) {
    const std::lock_guard lock(mutex_);
    catalogue_ = std::move(catalogue);
    loaded_ = LoadedSchedules(*catalogue_, gpus_);
}

std::vector<PlannedLaunch> DeviceGroupImpl::explain(CollectiveKind kind, std::size_t bytes) const {
    if (options_.size == 1)
        return {{.kernel = "copy", .bytes = bytes, .plan = {}, .why = "the group is one GPU"}};
    const std::lock_guard lock(mutex_);
    auto launches = explain_locked(kind, bytes);
    if (!why_path_.empty())
        for (PlannedLaunch& launch : launches)
            launch.why += concat("; the GPUs meet ", place_of(gpus_.path), " (", why_path_, ")",
                                 linked_ == 0 ? "" : ", some for schedules in the GPUs' memory");
    return launches;
}

std::vector<PlannedLaunch> DeviceGroupImpl::explain_locked(CollectiveKind kind,
                                                           std::size_t bytes) const {
    if (is_of_pairs({.kind = kind, .is_even = may_be_even(kind)}))
        return planned_pairs(kind, bytes);
    const std::string_view preferred = algorithm_listed(algorithms_, kind);
    const auto schedule = preferred.empty()
                              ? loaded_.find(kind, 0, largest_buffer(kind, options_.size, bytes))
                              : catalogue_->find(preferred, kind);
    if (schedule != nullptr)
        return {planned_program(*schedule, bytes,
                                preferred.empty() ? "a capsule that was loaded for this size"
                                                  : "the group's options request it")};
    auto launches = planned_launches(kind, bytes, gpus_, preferences_);
    if (!gpus_.are_over_pcie() || launches.front().plan.protocol == kernels::Protocol::kLL)
        return launches;
    const auto over_pcie = schedule_over_pcie(kind, options_.size);
    if (!over_pcie.is_ok()) return launches;
    return {planned_program(**over_pcie, bytes, "too much for LL")};
}

std::vector<PlannedLaunch> DeviceGroupImpl::planned_pairs(CollectiveKind kind,
                                                          std::size_t bytes) const {
    auto launches = planned_launches(kind, bytes, gpus_, preferences_);
    if (gpus_.path != kernels::GpuPath::kHost) return launches;
    for (PlannedLaunch& launch : launches) {
        launch.kernel = "pairs";
        launch.plan.blocks = std::min(launch.plan.blocks, gpus_.thresholds().schedules.most_blocks);
    }
    return launches;
}

PlannedLaunch DeviceGroupImpl::planned_program(const schedule::ScheduleSource& schedule,
                                               std::size_t bytes, std::string why) const {
    kernels::LaunchPlan plan{.blocks = preferences_.most_blocks};
    if (const auto planned = programs_->plan_for(schedule, bytes); planned.is_ok()) {
        plan = planned->plan;
        for (const std::string_view reason : {planned->obstacle, plan.why})
            if (!reason.empty()) why += concat("; ", reason);
    }
    return {.kernel = concat("program of ", schedule.name),
            .bytes = bytes,
            .plan = plan,
            .why = std::move(why)};
}

Status DeviceGroupImpl::launch_schedule(const Collective& collective,
                                        const schedule::SourcePtr& source, kernels::Stream stream,
                                        const DeviceLaunch& wanted) {
    if (reduces(collective.kind))
        PCCL_TRY(kernels::check_reduction(collective.type, collective.op));
    if (averages_integers(collective))
        return Status::unsupported(
            concat(source->name,
                   " averages no integers on GPUs, where programs add them in their "
                   "own type, which may wrap: leave the algorithm out, or sum a wider type"));
    PCCL_TRY(why_over());
    if (longest(collective) == 0) return Status::ok();
    PCCL_TRY(check_first_capture(stream));
    std::optional<kernels::ProgramLaunch> prepared;
    PCCL_TRY(outside_captures(stream, [&]() -> Status {
        PCCL_ASSIGN_OR_RETURN(prepared, programs_->prepare(collective, source, wanted.plan));
        return Status::ok();
    }));
    kernels::ProgramLaunch& run = *prepared;
    if (states_ == nullptr) PCCL_TRY(share_state(run.peer_pointers));
    run.team = team_;
    timeline_.add(run, {.program = programs_->program_of(source, collective.root),
                        .sequence = ++schedules_,
                        .is_captured = is_captured(stream)});
    return launch_in_order(stream, run.plan, [&] {
        if (!are_states_known()) PCCL_TRY(kernels::launch_state_exchange(run, stream));
        states_are_exchanged_ = true;
        return kernels::launch_program(run, stream);
    });
}

Status DeviceGroupImpl::check_first_capture(kernels::Stream stream) const {
    if (are_states_known() || !is_captured(stream)) return Status::ok();
    return Status::invalid_argument(
        "a group's first schedule cannot be captured into a CUDA graph: call it once before");
}

Status DeviceGroupImpl::share_state(abi::PeerPointers& peer_pointers) {
    const DeviceAddress state = programs_->state();
    PCCL_ASSIGN_OR_RETURN(const auto shared,
                          registrations_->find(state, programs_->state_bytes(), deadline()));
    for (Rank rank = 0; rank < options_.size; ++rank)
        peer_pointers.inputs[at(rank)] = shared.at(rank, state);
    return Status::ok();
}

Status DeviceGroupImpl::pull(const Collective& collective, const kernels::Launch& launch,
                             kernels::Stream stream) {
    DeviceStage& stage = collectives_.inputs;
    PCCL_ASSIGN_OR_RETURN(const Shared inputs, share(collective.inputs, collective.type, stage));
    kernels::Pull pull{.team = team_, .plan = launch.plan};
    std::ranges::copy(inputs.at, pull.peer_pointers.inputs);
    for (std::size_t peer = 0; peer < collective.outputs.size(); ++peer) {
        pull.outputs[peer] = collective.outputs[peer].data;
        pull.bytes[peer] = collective.outputs[peer].count * size_of(collective.type);
    }
    const std::uint64_t own = inputs.at[at(options_.rank)];
    return launch_in_order(stream, launch.plan, [&] {
        if (!inputs.staged.empty())
            PCCL_TRY(stage.copy(inputs.staged, collective.inputs, collective.type, stream));
        return gather_->launch(pull, collective.kind, std::bit_cast<const std::byte*>(own), stream);
    });
}

Status DeviceGroupImpl::launch_shared(const Collective& collective, kernels::Launch& launch,
                                      kernels::Stream stream) {
    PCCL_ASSIGN_OR_RETURN(const Tensors tensors, share_tensors({&collective, 1}));
    const Shared& inputs = tensors.inputs.front();
    const Shared& outputs = tensors.outputs.front();
    std::ranges::copy(inputs.at, launch.peer_pointers.inputs);
    std::ranges::copy(outputs.at, launch.peer_pointers.outputs);
    if (is_by_all_to_all(collective.kind)) post_lengths(collective, launch.peer_pointers);
    replace(inputs.staged, launch.blocks.inputs);
    replace(outputs.staged, launch.blocks.outputs);
    return launch_in_order(stream, launch.plan, [&] {
        PCCL_TRY(copy_in({&collective, 1}, tensors, stream));
        PCCL_TRY(launch_kernel_of(collective.kind, launch, stream));
        return copy_out({&collective, 1}, tensors, stream);
    });
}

Status DeviceGroupImpl::copy_alone(const Collective& collective, kernels::Stream stream) {
    const Block& from = collective.inputs.front();
    const Block& to = collective.outputs.front();
    if (from.data == to.data || from.count == 0) return Status::ok();
    return driver_.copy(address_of(to.data), address_of(from.data),
                        from.count * size_of(collective.type), stream);
}

Status DeviceGroupImpl::exchange(const MessageExchange& messages, kernels::Stream stream) {
    PCCL_TRY(check_process());
    PCCL_TRY(check_messages(messages.sends, options_.size));
    PCCL_TRY(check_messages(messages.receives, options_.size));
    if (messages.sends.empty() && messages.receives.empty()) return Status::ok();
    const auto lock = enter();
    log(messages, stream);
    return result_of(exchange_all(messages, stream));
}

Status DeviceGroupImpl::exchange_all(const MessageExchange& messages, kernels::Stream stream) {
    auto sends = not_empty(messages.sends);
    auto receives = not_empty(messages.receives);
    while (!sends.empty() || !receives.empty()) {
        PCCL_TRY(why_over());
        const auto some_sends = take_round(sends);
        const auto some_receives = take_round(receives);
        const MessageExchange some{some_sends, some_receives};
        PCCL_TRY(gpus_.path == kernels::GpuPath::kHost ? exchange_through_host(some, stream)
                                                       : exchange_once(some, stream));
    }
    return Status::ok();
}

Status DeviceGroupImpl::keep_order(Status (LaunchOrder::*side)(sys::cuda::Stream),
                                   const MessageExchange& messages, kernels::Stream stream) {
    if (!messages.sends.empty()) PCCL_TRY((sends_.order.*side)(stream));
    return messages.receives.empty() ? Status::ok() : (receives_.order.*side)(stream);
}

Status DeviceGroupImpl::exchange_once(const MessageExchange& messages, kernels::Stream stream) {
    // A received message has one block.
    const int left = preferences_.most_blocks - static_cast<int>(messages.receives.size());
    const int most = std::min(left, abi::kMostBlocks - abi::kMostDevices);
    kernels::MessageLaunch launch{
        .team = team_, .blocks = blocks_for(messages.sends, most, gpus_.thresholds().messages)};
    for (const PeerMessage& send : messages.sends)
        launch.sent[launch.sends++] = {.data = send.data, .bytes = send.bytes, .peer = send.peer};
    std::vector<Block> blocks(at(options_.size));
    for (const PeerMessage& receive : messages.receives)
        blocks[at(receive.peer)] = {receive.data, receive.bytes};
    PCCL_ASSIGN_OR_RETURN(const Shared shared, share(blocks, DataType::kBytes, receives_.outputs));
    for (const PeerMessage& receive : messages.receives)
        launch.received[launch.receives++] = {.peer_address = shared.at[at(receive.peer)],
                                              .bytes = receive.bytes,
                                              .peer = receive.peer};
    PCCL_TRY(keep_order(&LaunchOrder::begin, messages, stream));
    PCCL_TRY(kernels::launch_messages(launch, stream));
    if (!shared.staged.empty())
        PCCL_TRY(receives_.outputs.copy(blocks, shared.staged, DataType::kBytes, stream));
    return keep_order(&LaunchOrder::end, messages, stream);
}

Status DeviceGroupImpl::announce(const void* memory) {
    PCCL_TRY(check_process());
    if (gpus_.path == kernels::GpuPath::kHost) return Status::ok();  // no peer maps it
    return registrations_->announce(address_of(memory), Deadline::after(timeout_.load()));
}

}  // namespace pccl::device
