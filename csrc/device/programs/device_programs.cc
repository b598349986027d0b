// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/programs/device_programs.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <string_view>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/collective/geometry.h"
#include "csrc/device/launch/lowering.h"
#include "csrc/device/programs/staging.h"
#include "csrc/schedule/verifier/verifier.h"

namespace pccl::device {
namespace {

using kernels::Protocol;
using sys::cuda::DeviceAddress;

constexpr std::size_t kMostLLWindows = 2;

constexpr const char* kNoLL128 =
    "LL128 lines do not arrive whole between these GPUs, or one of them has no NVLinks";

// Alignment in bytes for tables with 8-byte members, and for the widest loads of scratch chunks.
constexpr std::size_t kAlignment = 256;

/// Tables one after the other, as in GPU memory.
class Image {
   public:
    /// Adds `entries` and returns their offset.
    template <typename Entry>
    std::size_t add(const std::vector<Entry>& entries) {
        const std::size_t at = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
        const auto raw = std::as_bytes(std::span(entries));
        bytes_.resize(at);
        bytes_.insert(bytes_.end(), raw.begin(), raw.end());
        return at;
    }
    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

   private:
    std::vector<std::byte> bytes_;
};

template <typename Pointee>
Pointee* pointer_to(DeviceAddress address) {
    return std::bit_cast<Pointee*>(address);
}

Result<schedule::Schedule> verified(const schedule::ScheduleSource& source, int ranks, Rank root) {
    PCCL_ASSIGN_OR_RETURN(schedule::Schedule made,
                          schedule::generate(source, schedule::least_shape(source, ranks, root)));
    PCCL_TRY(schedule::verify(made).status());
    return made;
}

/// Returns a share as CPU collectives cut blocks: the last shares are shorter, or empty.
std::size_t share_of(std::size_t bytes, int shares) {
    return Cut{.chunks = shares, .grain = chunk_grain(1)}.chunk_length(bytes);
}

/// Returns whether peers have taken all messages of the owner of this state.
bool has_taken_all(const abi::DeviceProgramState& state) {
    const auto is_empty = [](const abi::DeviceFifo& fifo) {
        return std::ranges::all_of(fifo.counters, [](const abi::DeviceCounters& each) {
            return each.emptied == each.sent;
        });
    };
    return std::ranges::all_of(
        state.fifos, [&](const auto& of_peer) { return std::ranges::all_of(of_peer, is_empty); });
}

bool runs_schedules(Protocol protocol) {
    return protocol == Protocol::kDirect || protocol == Protocol::kLL ||
           protocol == Protocol::kLL128;
}

/// Checks the plan's bounds. Programs that use LL have lines of their own, so the heap's lines do
/// not bound their blocks and threads.
Status check_bounds(const kernels::LaunchPlan& plan) {
    PCCL_TRY(kernels::check_plan({.blocks = plan.blocks, .threads = plan.threads}, 0));
    if (runs_schedules(plan.protocol) && plan.threads >= abi::kLeastProgramThreads)
        return Status::ok();
    return Status::invalid_argument(
        concat("schedules run by protocol direct, ll or ll128, in blocks of ",
               abi::kLeastProgramThreads, " threads at least"));
}

/// Returns the threads for `bytes` of a chunk with `share` bytes each: all of them synchronise at
/// every step.
int threads_for(std::size_t bytes, std::size_t share) {
    constexpr std::size_t kWarp = 32;
    const std::size_t warps = (bytes / share + kWarp - 1) / kWarp;
    return static_cast<int>(
        std::clamp<std::size_t>(warps * kWarp, abi::kLeastProgramThreads, kernels::kMostThreads));
}

}  // namespace

DevicePrograms::~DevicePrograms() {
    for (const DeviceAddress base : memory_) static_cast<void>(options_.driver.deallocate(base));
}

PlannedProgram DevicePrograms::usual_plan(const schedule::ScheduleSource& source,
                                          const DeviceGrid& grid, std::size_t bytes) const {
    const auto& thresholds = options_.gpus.thresholds().schedules;
    const ProtocolChoice choice = choose_protocol({.chunk_bytes = share_of(bytes, grid.chunks),
                                                   .suits_ll = grid.suits_ll(bytes, kMostLLWindows),
                                                   .is_short = grid.suits_ll(bytes, 1),
                                                   .ll128 = options_.ll128,
                                                   .preferred = options_.preferences.protocol,
                                                   .wanted = source.protocol,
                                                   .thresholds = thresholds});
    kernels::LaunchPlan plan{.protocol = choice.protocol,
                             .blocks = std::min(options_.preferences.most_blocks,
                                                std::max(grid.lanes, thresholds.most_blocks)),
                             .why = choice.why};
    const int workers = std::clamp(plan.blocks / grid.lanes, 1, grid.workers(bytes));
    const std::size_t part = bytes / static_cast<std::size_t>(workers * grid.chunks);
    constexpr std::size_t kLL128Share = abi::kPairBytes / 8;
    if (plan.protocol == Protocol::kLL) plan.threads = threads_for(part, abi::kLLDataBytes);
    if (plan.protocol == Protocol::kLL128) plan.threads = threads_for(part, kLL128Share);
    return {plan, choice.obstacle};
}

Result<PlannedProgram> DevicePrograms::plan_for(const schedule::ScheduleSource& source,
                                                std::size_t bytes) const {
    const Rank root = source.only ? source.only->root : Rank{0};
    PCCL_ASSIGN_OR_RETURN(
        const schedule::Schedule made,
        schedule::generate(source, schedule::least_shape(source, options_.size, root)));
    PCCL_ASSIGN_OR_RETURN(const DeviceGrid grid, device_grid(made, options_.gpus.thresholds()));
    PlannedProgram planned = usual_plan(source, grid, bytes);
    int& blocks = planned.plan.blocks;
    blocks = grid.lanes * std::min(grid.workers(bytes), blocks / grid.lanes);
    return planned;
}

Status DevicePrograms::check(const kernels::LaunchPlan& wanted) const {
    PCCL_TRY(check_bounds(wanted));
    if (wanted.protocol != Protocol::kLL128 || options_.ll128 == abi::LL128Trial::kWhole)
        return Status::ok();
    return Status::unsupported(kNoLL128);
}

Result<kernels::ProgramLaunch> DevicePrograms::prepare(
    const Collective& collective, const schedule::SourcePtr& source,
    const std::optional<kernels::LaunchPlan>& wanted) {
    if (wanted) PCCL_TRY(check(*wanted));
    if (source->kind != collective.kind)
        return Status::unsupported(
            concat(source->name, " does not make ", schedule::to_string(collective.kind)));
    const bool is_rooted = schedule::is_rooted(collective.kind);
    PCCL_ASSIGN_OR_RETURN(const Ready* const ready,
                          find({source, is_rooted ? collective.root : Rank{0}}));
    const DeviceGrid& grid = ready->grid;
    kernels::ProgramLaunch run{.program = ready->program,
                               .bytes = longest_bytes(collective),
                               .reduces = reduces(collective.kind),
                               .type = collective.type,
                               .op = collective.op};
    const kernels::LaunchPlan most = wanted ? *wanted : usual_plan(*source, grid, run.bytes).plan;
    if (most.blocks < grid.lanes)
        return Status::invalid_argument(concat("a plan of ", most.blocks, " blocks; ", source->name,
                                               " needs one for each of its ", grid.lanes,
                                               " lanes"));
    run.program.workers = std::min(grid.workers(run.bytes), most.blocks / grid.lanes);
    run.program.chunk_bytes = share_of(run.bytes, grid.chunks);
    run.program.part_bytes = share_of(run.program.chunk_bytes, run.program.workers);
    run.program.window_bytes =
        Cut{.window = grid.window_bytes(kernels::form_of(most.protocol)), .grain = chunk_grain(1)}
            .even_window(run.program.part_bytes);
    run.plan = most;
    run.plan.blocks = grid.lanes * run.program.workers;
    std::ranges::transform(collective.inputs, run.inputs, &Block::data);
    std::ranges::transform(collective.outputs, run.outputs, &Block::data);
    return run;
}

std::shared_ptr<const schedule::Program> DevicePrograms::program_of(
    const schedule::SourcePtr& source, Rank root) const {
    return ready_.at({source, schedule::is_rooted(source->kind) ? root : Rank{0}}).origin;
}

Result<const DevicePrograms::Ready*> DevicePrograms::find(const Key& key) {
    auto found = ready_.find(key);
    if (found == ready_.end()) {
        PCCL_ASSIGN_OR_RETURN(const Ready made, make(key));
        found = ready_.emplace(key, made).first;
    }
    return &found->second;
}

Result<DevicePrograms::Ready> DevicePrograms::make(const Key& key) {
    PCCL_ASSIGN_OR_RETURN(schedule::Schedule made, verified(*key.source, options_.size, key.root));
    Ready ready;
    PCCL_ASSIGN_OR_RETURN(ready.grid, device_grid(made, options_.gpus.thresholds()));
    ready.origin = std::make_shared<const schedule::Program>(
        std::move(made.programs[static_cast<std::size_t>(options_.rank)]));
    PCCL_ASSIGN_OR_RETURN(const DeviceTables tables, tabulate(*ready.origin, ready.grid.chunks));
    PCCL_TRY(make_state());
    PCCL_ASSIGN_OR_RETURN(ready.program, upload(tables, ready.grid));
    return ready;
}

Status DevicePrograms::make_state() {
    if (state_ != 0) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(progress_, allocate(sizeof(abi::DeviceProgress)));
    if (options_.states != nullptr) return map_states();
    PCCL_ASSIGN_OR_RETURN(state_, allocate(state_bytes()));
    return Status::ok();
}

Status DevicePrograms::map_states() {
    PCCL_TRY(options_.states->map());
    if (options_.linked_states != nullptr) {
        for (Rank rank = 0; rank < options_.size; ++rank)
            if (rank == options_.rank || has_rank(options_.linked, rank))
                PCCL_TRY(options_.linked_states->map(rank));
        PCCL_ASSIGN_OR_RETURN(linked_state_, introduce(*options_.linked_states));
    }
    PCCL_ASSIGN_OR_RETURN(state_, introduce(*options_.states));
    return Status::ok();
}

Result<DeviceAddress> DevicePrograms::introduce(const transport::nvlink::SymmetricHeap& states) {
    const transport::nvlink::PeerAddresses bases = states.bases();
    static_assert(sizeof bases == sizeof abi::DeviceProgramState::peers);
    const DeviceAddress own = bases[at(options_.rank)];
    PCCL_TRY(
        store(own + offsetof(abi::DeviceProgramState, peers), std::as_bytes(std::span(bases))));
    return own;
}

abi::DeviceStates DevicePrograms::states() const {
    abi::DeviceStates states;
    for (Rank rank = 0; rank < options_.size; ++rank) {
        const bool is_linked = has_rank(options_.linked, rank);
        states.with[rank] = pointer_to<abi::DeviceProgramState>(is_linked ? linked_state_ : state_);
    }
    return states;
}

Result<abi::DeviceProgram> DevicePrograms::upload(const DeviceTables& tables,
                                                  const DeviceGrid& grid) {
    Image image;
    const std::size_t lanes = image.add(tables.lanes);
    const std::size_t steps = image.add(tables.steps);
    const std::size_t ports = image.add(tables.ports);
    const std::size_t waits = image.add(tables.waits);
    const std::size_t places = image.add(tables.places);
    PCCL_ASSIGN_OR_RETURN(const DeviceAddress base, allocate(image.bytes().size()));
    PCCL_TRY(store(base, image.bytes()));
    abi::DeviceProgram program{.lanes = pointer_to<const abi::DeviceLane>(base + lanes),
                               .steps = pointer_to<const abi::DeviceStep>(base + steps),
                               .ports = pointer_to<const abi::DevicePort>(base + ports),
                               .most_steps = tables.most_steps,
                               .most_ports = tables.most_ports,
                               .waits = pointer_to<const abi::DeviceWait>(base + waits),
                               .places = pointer_to<const abi::DeviceSlice>(base + places),
                               .states = states(),
                               .progress = pointer_to<abi::DeviceProgress>(progress_),
                               .lane_count = static_cast<int>(tables.lanes.size()),
                               .scratch_chunks = tables.scratch_chunks,
                               .is_coupled = tables.is_coupled ? 1 : 0};
    if (tables.scratch_chunks == 0) return program;
    const auto chunks = static_cast<std::size_t>(tables.scratch_chunks);
    const auto workers = static_cast<std::size_t>(grid.most_workers());
    PCCL_ASSIGN_OR_RETURN(const DeviceAddress scratch,
                          allocate(chunks * workers * grid.window_bytes(abi::MessageForm::kPlain)));
    program.scratch = pointer_to<std::byte>(scratch);
    return program;
}

/// Allocates zero-filled memory, which is kept until the end.
Result<DeviceAddress> DevicePrograms::allocate(std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(const DeviceAddress base,
                          options_.driver.allocate(options_.device, bytes));
    memory_.push_back(base);
    PCCL_TRY(options_.driver.clear(base, bytes));
    return base;
}

bool DevicePrograms::await_taken(Deadline deadline) const {
    constexpr std::chrono::microseconds kPause{100};
    if (state_ == 0 || !is_reached_by_peers()) return true;
    const auto seen =
        PinnedStaging::make(options_.driver, options_.device, sizeof(abi::DeviceProgramState));
    if (!seen.is_ok()) return false;
    const auto& state = *reinterpret_cast<const abi::DeviceProgramState*>(seen->bytes().data());
    while (seen->copy(seen->address(), state_).is_ok()) {
        if (has_taken_all(state)) return true;
        if (deadline.passed()) return false;
        system_clock().sleep_for(kPause);
    }
    return false;
}

/// Stores the bytes; complete on return.
Status DevicePrograms::store(DeviceAddress to, std::span<const std::byte> from) {
    PCCL_ASSIGN_OR_RETURN(const PinnedStaging staging,
                          PinnedStaging::make(options_.driver, options_.device, from.size()));
    std::ranges::copy(from, staging.bytes().begin());
    return staging.copy(to, staging.address());
}

}  // namespace pccl::device
