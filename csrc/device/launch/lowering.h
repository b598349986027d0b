// From collectives to launches of kernels: which kernel, which plan, which memory.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "csrc/collective/collective.h"
#include "csrc/device/launch/preferences.h"
#include "csrc/kernels/launch.h"
#include "csrc/schedule/source.h"

namespace pccl::device {

/// What the caller of one launch decides: the same on all ranks, but for `timeout`.
struct DeviceLaunch {
    std::optional<kernels::Plan> plan{};  // default: the library's choice
    /// A schedule instead of a kernel made for the collective; its blocks must have one length. It
    /// runs in the plan's blocks at most, and of its threads; the plan must be alike on all ranks.
    schedule::SourcePtr schedule{};
    Preferences preferences{};                           // the group's, where it launches
    std::optional<std::chrono::milliseconds> timeout{};  // default: the group's
};

/// Bytes of the longest block of either side.
[[nodiscard]] std::size_t longest_bytes(const Collective& collective);

/// How the library launches `kind` of blocks of `bytes`.
[[nodiscard]] PCCL_API kernels::Plan plan_collective(CollectiveKind kind, std::size_t bytes,
                                                     const kernels::Gpus& gpus);

/// The same of one collective, unless `wanted` says how.
[[nodiscard]] PCCL_API kernels::Plan plan_of(const Collective& collective,
                                             const DeviceLaunch& wanted, const kernels::Gpus& gpus);

/// The launch but for its team and peer pointers. kInvalidArgument, kUnsupported.
[[nodiscard]] Result<kernels::Launch> lower(const Collective& collective,
                                            const DeviceLaunch& wanted, Rank rank,
                                            const kernels::Gpus& gpus);

/// Whether copy engines do it: blocks are moved as they are, and all ranks know their lengths.
[[nodiscard]] PCCL_API bool is_pulled(const Collective& collective, const kernels::Plan& plan);

/// Whether a schedule can do it: all ranks know the length of the blocks, which is one.
[[nodiscard]] PCCL_API bool takes_schedules(const Collective& collective);

/// Whether there is nothing to do, on any rank.
[[nodiscard]] bool is_nothing(const Collective& collective);

/// An all_reduce as two collectives, over parts of whole cache lines.
struct PCCL_API TwoPhases {
    std::vector<Block> inputs;   // by rank
    std::vector<Block> outputs;  // by rank
    [[nodiscard]] Collective reduce_scatter(const Collective& whole, Rank rank) const;
    [[nodiscard]] Collective all_gather(const Collective& whole, Rank rank) const;
};
/// Nothing where one kernel does it better.
[[nodiscard]] PCCL_API std::optional<TwoPhases> two_phases(const Collective& collective,
                                                           const DeviceLaunch& wanted,
                                                           const kernels::Gpus& gpus);

/// The kernel that makes a collective, as its file in csrc/kernels is called.
[[nodiscard]] std::string_view kernel_of(CollectiveKind kind);

[[nodiscard]] Status launch_kernel_of(CollectiveKind kind, const kernels::Launch& launch,
                                      kernels::Stream stream);

}  // namespace pccl::device
