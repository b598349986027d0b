// SPDX-License-Identifier: Apache-2.0

// Lowering of collectives to kernel launches: which kernel, which plan, which memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "csrc/collective/collective.h"
#include "csrc/device/launch/preferences.h"
#include "csrc/kernels/launch.h"
#include "csrc/schedule/source.h"

namespace pccl::device {

/// Caller's choices for one launch. They are the same on all ranks, except `timeout`.
struct DeviceLaunch {
    std::optional<kernels::LaunchPlan> plan{};  // default: the library's choice
    /// A schedule instead of a kernel; its blocks must have one length. It uses at most the blocks
    /// and threads of the plan, which must be the same on all ranks.
    schedule::SourcePtr schedule{};
    Preferences preferences{};                           // the group's preferences at the launch
    std::optional<std::chrono::milliseconds> timeout{};  // default: the group's
};

/// Returns the bytes of the longest block of either side.
[[nodiscard]] std::size_t longest_bytes(const Collective& collective);

/// Returns the library's plan for `kind` of blocks of `bytes`.
[[nodiscard]] PCCL_API kernels::LaunchPlan plan_collective(CollectiveKind kind, std::size_t bytes,
                                                           const kernels::Gpus& gpus);

/// Returns the plan of one collective: from `wanted`, else the library's.
[[nodiscard]] PCCL_API kernels::LaunchPlan plan_of(const Collective& collective,
                                                   const DeviceLaunch& wanted,
                                                   const kernels::Gpus& gpus);

/// Returns the launch; its team and peer pointers are not set. kInvalidArgument, kUnsupported.
[[nodiscard]] Result<kernels::Launch> lower(const Collective& collective,
                                            const DeviceLaunch& wanted, Rank rank,
                                            const kernels::Gpus& gpus);

/// Returns whether copy engines run it: blocks are moved unchanged, and all ranks have their
/// lengths.
[[nodiscard]] PCCL_API bool is_pulled(const Collective& collective,
                                      const kernels::LaunchPlan& plan);

/// Returns whether a schedule can run it: all blocks have one length, which all ranks have.
[[nodiscard]] PCCL_API bool takes_schedules(const Collective& collective);

/// Posts the length that this rank expects from each peer, for a collective whose lengths only
/// pairs of ranks have. Its only block, where it has one, is the root's.
void post_lengths(const Collective& collective, abi::PeerPointers& peer_pointers);

/// Returns whether no rank has anything to do.
[[nodiscard]] bool is_nothing(const Collective& collective);

/// An all_reduce as two collectives over parts of whole cache lines.
struct PCCL_API TwoPhases {
    std::vector<Block> inputs;   // by rank
    std::vector<Block> outputs;  // by rank
    [[nodiscard]] Collective reduce_scatter(const Collective& whole, Rank rank) const;
    [[nodiscard]] Collective all_gather(const Collective& whole, Rank rank) const;
};
/// Returns the two phases; nullopt where one kernel is faster.
[[nodiscard]] PCCL_API std::optional<TwoPhases> two_phases(const Collective& collective,
                                                           const DeviceLaunch& wanted,
                                                           const kernels::Gpus& gpus);

/// Returns the name of the kernel for `kind`, as its file in csrc/kernels is called.
[[nodiscard]] std::string_view kernel_of(CollectiveKind kind);

[[nodiscard]] Status launch_kernel_of(CollectiveKind kind, const kernels::Launch& launch,
                                      kernels::Stream stream);

/// Returns the fingerprint of collectives that are called together, of the wanted launch, and of
/// the loaded schedules (LoadedSchedules::digest), in the format of abi::DeviceTeam. Two different
/// calls collide once in 65536.
[[nodiscard]] PCCL_API std::uint32_t launch_fingerprint(std::span<const Collective> collectives,
                                                        const DeviceLaunch& wanted,
                                                        std::uint64_t loaded = 0);

}  // namespace pccl::device
