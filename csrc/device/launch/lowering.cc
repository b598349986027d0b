// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/launch/lowering.h"

#include <algorithm>
#include <cstddef>

#include "csrc/collective/fingerprint.h"
#include "csrc/kernels/collective_plans.h"

namespace pccl::device {

namespace {

using kernels::Protocol;

bool is_even(std::span<const Block> blocks) {
    return std::ranges::all_of(
        blocks, [&](const Block& block) { return block.count == blocks.front().count; });
}

bool is_moved(CollectiveKind kind) {
    return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kAllToAll;
}

kernels::BlockPointers blocks_of(const Collective& collective) {
    kernels::BlockPointers blocks{};
    const std::size_t size = size_of(collective.type);
    const bool is_got = collective.kind == CollectiveKind::kReduceScatter ||
                        collective.kind == CollectiveKind::kBroadcast;
    const auto& sized = is_got ? collective.outputs : collective.inputs;
    for (std::size_t i = 0; i < collective.inputs.size(); ++i)
        blocks.inputs[i] = collective.inputs[i].data;
    for (std::size_t i = 0; i < collective.outputs.size(); ++i)
        blocks.outputs[i] = collective.outputs[i].data;
    for (std::size_t i = 0; i < sized.size(); ++i) blocks.bytes[i] = sized[i].count * size;
    return blocks;
}

/// Returns gather as an all_to_all in which all ranks send to the root only.
kernels::BlockPointers sent_to_root(kernels::BlockPointers blocks, Rank root) {
    const auto at = static_cast<std::size_t>(root);
    const std::byte* const input = blocks.inputs[0];
    const std::size_t bytes = blocks.bytes[0];
    blocks.inputs[0] = nullptr;
    blocks.bytes[0] = 0;
    blocks.inputs[at] = input;
    blocks.bytes[at] = bytes;
    return blocks;
}

/// Returns whether all blocks have one known length. Where one ended early, its lines after its end
/// would not match the peers'.
bool has_even_lengths(const Collective& collective) {
    return !is_of_pairs(collective) && is_even(collective.inputs) && is_even(collective.outputs);
}

/// Returns whether `protocol` can run the collective, fast or not.
bool can_go_by(Protocol protocol, const Collective& collective) {
    const bool is_known = !is_of_pairs(collective);
    switch (protocol) {
        case Protocol::kLL:
            return has_even_lengths(collective) &&
                   longest_bytes(collective) <= kernels::kMostLLBytes;
        case Protocol::kStaggered:
            return is_known &&
                   (is_moved(collective.kind) || collective.kind == CollectiveKind::kAllReduce);
        case Protocol::kCopyEngine:
            return is_known && is_moved(collective.kind);
        case Protocol::kLL128:
            return false;  // for schedules only
        case Protocol::kDirect:
            break;
    }
    return true;
}

kernels::LaunchPlan usual_plan(const Collective& collective, const DeviceLaunch& wanted,
                               const kernels::Gpus& gpus) {
    if (is_of_pairs(collective)) return kernels::plan_of_unknown_lengths();
    const std::size_t bytes = longest_bytes(collective);
    kernels::LaunchPlan plan = plan_collective(collective.kind, bytes, gpus);
    if (plan.protocol == Protocol::kLL && !has_even_lengths(collective))
        plan = {.protocol = Protocol::kDirect,
                .blocks = gpus.thresholds().uneven_blocks,
                .why = "small blocks of several lengths"};
    const bool is_large =
        gpus.sent(bytes) >= gpus.thresholds().least_sent_by_preferred_copy_engines;
    if (wanted.preferences.copy_engines && is_large && is_moved(collective.kind))
        plan = kernels::copy_engine_plan();
    return plan;
}

/// Returns a plan with the preferred protocol, where that can run the collective.
kernels::LaunchPlan preferred_plan(const Collective& collective, const DeviceLaunch& wanted,
                                   const kernels::Gpus& gpus) {
    kernels::LaunchPlan plan = usual_plan(collective, wanted, gpus);
    const auto preferred = wanted.preferences.protocol;
    if (!preferred || *preferred == plan.protocol || !can_go_by(*preferred, collective))
        return plan;
    if (*preferred == Protocol::kLL) {
        plan = kernels::ll_plan(longest_bytes(collective));
    } else if (plan.protocol == Protocol::kLL) {
        plan = kernels::direct_plan(longest_bytes(collective), gpus.thresholds().usual_blocks);
    }
    plan.protocol = *preferred;
    plan.why = "the group's options request this protocol";
    return plan;
}

/// Returns `plan`, which is for a block of `bytes`, limited to `most_blocks` blocks.
kernels::LaunchPlan within(int most_blocks, const kernels::LaunchPlan& plan, std::size_t bytes) {
    if (plan.blocks <= most_blocks) return plan;
    if (plan.protocol == Protocol::kLL) {
        const bool is_enough = bytes <= kernels::most_ll_bytes(most_blocks);
        return is_enough ? kernels::ll_plan(bytes, most_blocks)
                         : kernels::direct_plan(bytes, most_blocks);
    }
    kernels::LaunchPlan smaller = plan;
    smaller.blocks = most_blocks;
    return smaller;
}

}  // namespace

std::size_t longest_bytes(const Collective& collective) {
    return longest(collective) * size_of(collective.type);
}

kernels::LaunchPlan plan_collective(CollectiveKind kind, std::size_t bytes,
                                    const kernels::Gpus& gpus) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
            return kernels::plan_all_reduce(bytes, gpus);
        case CollectiveKind::kReduce:
            return kernels::plan_reduce(bytes, gpus);
        case CollectiveKind::kReduceScatter:
            return kernels::plan_reduce_scatter(bytes, gpus);
        case CollectiveKind::kAllGather:
            return kernels::plan_all_gather(bytes, gpus);
        case CollectiveKind::kAllToAll:
            return kernels::plan_all_to_all(bytes, gpus);
        case CollectiveKind::kBroadcast:
            return kernels::plan_broadcast(bytes, gpus);
        case CollectiveKind::kGather:
        case CollectiveKind::kScatter:
            break;
    }
    return kernels::plan_of_unknown_lengths();
}

kernels::LaunchPlan plan_of(const Collective& collective, const DeviceLaunch& wanted,
                            const kernels::Gpus& gpus) {
    if (wanted.plan) return *wanted.plan;
    return within(wanted.preferences.most_blocks, preferred_plan(collective, wanted, gpus),
                  longest_bytes(collective));
}

bool is_nothing(const Collective& collective) {
    return !is_of_pairs(collective) && longest(collective) == 0;
}

void post_lengths(const Collective& collective, abi::PeerPointers& peer_pointers) {
    const auto& outputs = collective.outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i)
        peer_pointers.inputs[outputs.size() == 1 ? static_cast<std::size_t>(collective.root) : i] =
            outputs[i].count * size_of(collective.type);
}

bool takes_schedules(const Collective& collective) { return has_even_lengths(collective); }

bool is_pulled(const Collective& collective, const kernels::LaunchPlan& plan) {
    return plan.protocol == Protocol::kCopyEngine && is_moved(collective.kind) &&
           !is_of_pairs(collective);
}

Result<kernels::Launch> lower(const Collective& collective, const DeviceLaunch& wanted, Rank rank,
                              const kernels::Gpus& gpus) {
    PCCL_TRY(check_shape(collective, rank, gpus.count));
    if (reduces(collective.kind))
        PCCL_TRY(kernels::check_reduction(collective.type, collective.op));
    kernels::Launch launch{.blocks = blocks_of(collective),
                           .type = collective.type,
                           .op = collective.op,
                           .plan = plan_of(collective, wanted, gpus)};
    if (schedule::is_rooted(collective.kind)) launch.root = collective.root;
    if (collective.kind == CollectiveKind::kGather)
        launch.blocks = sent_to_root(launch.blocks, collective.root);
    if (launch.plan.protocol == Protocol::kLL128)
        return Status::invalid_argument("LL128 carries schedules alone, no kernel of a collective");
    if (launch.plan.protocol == Protocol::kLL && is_of_pairs(collective))
        return Status::invalid_argument("blocks of several lengths do not go by LL");
    PCCL_TRY(kernels::check_plan(launch.plan, longest_bytes(collective)));
    return launch;
}

Collective TwoPhases::reduce_scatter(const Collective& whole, Rank rank) const {
    return {.kind = CollectiveKind::kReduceScatter,
            .type = whole.type,
            .op = whole.op,
            .inputs = inputs,
            .outputs = {&outputs[static_cast<std::size_t>(rank)], 1}};
}

Collective TwoPhases::all_gather(const Collective& whole, Rank rank) const {
    return {.kind = CollectiveKind::kAllGather,
            .type = whole.type,
            .op = whole.op,
            .inputs = {&outputs[static_cast<std::size_t>(rank)], 1},
            .outputs = outputs};
}

std::optional<TwoPhases> two_phases(const Collective& collective, const DeviceLaunch& wanted,
                                    const kernels::Gpus& gpus) {
    constexpr std::size_t kUnit = 128;  // elements: whole cache lines for every element size
    if (collective.kind != CollectiveKind::kAllReduce || wanted.plan) return std::nullopt;
    const Block& input = collective.inputs.front();
    const Block& output = collective.outputs.front();
    const std::size_t size = size_of(collective.type);
    if (!kernels::is_faster_in_two(input.count * size, gpus)) return std::nullopt;
    const auto n = static_cast<std::size_t>(gpus.count);
    const std::size_t units = (input.count + kUnit - 1) / kUnit;
    const std::size_t share = (units + n - 1) / n * kUnit;
    TwoPhases phases;
    for (std::size_t part = 0; part < n; ++part) {
        const std::size_t begin = std::min(part * share, input.count);
        const std::size_t count = std::min(share, input.count - begin);
        phases.inputs.push_back({input.data + begin * size, count});
        phases.outputs.push_back({output.data + begin * size, count});
    }
    return phases;
}

std::string_view kernel_of(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::kReduce:
            return schedule::to_string(CollectiveKind::kAllReduce);
        case CollectiveKind::kGather:
        case CollectiveKind::kScatter:
            return schedule::to_string(CollectiveKind::kAllToAll);
        default:
            return schedule::to_string(kind);
    }
}

Status launch_kernel_of(CollectiveKind kind, const kernels::Launch& launch,
                        kernels::Stream stream) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
        case CollectiveKind::kReduce:
            return kernels::launch_all_reduce(launch, stream);
        case CollectiveKind::kReduceScatter:
            return kernels::launch_reduce_scatter(launch, stream);
        case CollectiveKind::kAllGather:
            return kernels::launch_all_gather(launch, stream);
        case CollectiveKind::kAllToAll:
        case CollectiveKind::kGather:
        case CollectiveKind::kScatter:
            return kernels::launch_all_to_all(launch, stream);
        case CollectiveKind::kBroadcast:
            break;
    }
    return kernels::launch_broadcast(launch, stream);
}

namespace {

/// Returns the digest with `wanted` mixed in, which is the same on all ranks.
std::uint64_t mixed_in(std::uint64_t digest, const DeviceLaunch& wanted) {
    if (wanted.plan) {
        digest = mixed(digest, 1 + static_cast<std::uint64_t>(wanted.plan->protocol));
        digest = mixed(digest, static_cast<std::uint64_t>(wanted.plan->blocks));
        digest = mixed(digest, static_cast<std::uint64_t>(wanted.plan->threads));
    }
    if (wanted.schedule != nullptr) digest = mixed(digest, wanted.schedule->digest);
    return digest;
}

}  // namespace

std::uint32_t launch_fingerprint(std::span<const Collective> collectives,
                                 const DeviceLaunch& wanted, std::uint64_t loaded) {
    constexpr std::uint32_t kUpperHalf = 0xFFFF0000;
    std::uint64_t digest = mixed_in(loaded, wanted);
    for (const Collective& collective : collectives)
        digest = mixed(digest, digest_of(header_of(signature_of(collective))));
    return static_cast<std::uint32_t>(spread(digest) >> 32U) & kUpperHalf;
}

}  // namespace pccl::device
