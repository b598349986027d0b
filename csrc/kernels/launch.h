// SPDX-License-Identifier: Apache-2.0

// Parameters and entry points of all collective launches.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pccl/export.h>
#include <pccl/status.h>
#include <pccl/types.h>
#include "csrc/abi/clock_pings.h"
#include "csrc/abi/device_program.h"
#include "csrc/abi/device_team.h"
#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// A CUstream.
using Stream = void*;

/// This rank's blocks, by the rank that they come from or go to; entry 0 where a side is one block.
struct BlockPointers {
    const std::byte* inputs[abi::kMostDevices];
    std::byte* outputs[abi::kMostDevices];
    std::size_t bytes[abi::kMostDevices];  // of the one block; all_to_all: of each input
};

inline constexpr std::int32_t kNoRoot = -1;

/// One collective of a group, on this rank.
struct Launch {
    abi::DeviceTeam team{};
    abi::PeerPointers peer_pointers{};  // addresses of the blocks for the peers; not used by kLL
    BlockPointers blocks{};
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    std::int32_t root = kNoRoot;
    LaunchPlan plan{};
};

/// A message of this rank to or from `peer`.
struct KernelMessage {
    std::byte* data = nullptr;
    std::uint64_t peer_address = 0;  // receives only: the address of `data` for `peer`
    std::size_t bytes = 0;
    std::int32_t peer = 0;
};

/// Messages of one launch: at most one to each rank, and one from each.
struct MessageLaunch {
    abi::DeviceTeam team{};
    KernelMessage sent[abi::kMostDevices]{};
    KernelMessage received[abi::kMostDevices]{};
    std::int32_t sends = 0;
    std::int32_t receives = 0;
    std::int32_t blocks = 1;  // of each message that is sent
};

/// Messages through host memory. `blocks` counts those of each side of each message.
struct HostMessageLaunch {
    MessageLaunch messages{};
    abi::DeviceStates states{};  // for the FIFOs
};
inline constexpr int kHostMessageThreads = 256;  // of a block

inline constexpr int kMostParts = 24;  // of a batch: as many as fit into kernel parameters

/// One collective of a batch. Entry r belongs to rank r: its input block, or its output; a side of
/// one block is the same for all.
struct Part {
    const std::byte* inputs[abi::kMostDevices];
    std::byte* outputs[abi::kMostDevices];
    std::uint32_t bytes;       // of a block
    std::uint32_t first_word;  // in the batch; each part is padded to a whole word
};

/// Collectives of one kind, type and operator.
struct BatchLaunch {
    abi::DeviceTeam team{};
    Part parts[kMostParts]{};
    std::int32_t count = 0;
    std::uint32_t words = 0;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    bool reduces = false;  // true: all_reduce, reduce_scatter; false: all_gather
    LaunchPlan plan{};
};

/// One collective of a large batch; it has blocks of the launch to itself.
struct LargePart {
    abi::PeerPointers peer_pointers;
    const std::byte* input;  // all_gather: the block that this rank contributes
    std::byte* output;       // reduce_scatter: the block that this rank gets; otherwise null
    std::size_t bytes;       // of a block
    std::int32_t first_block;
    std::int32_t blocks;
};

/// Collectives of one kind, type and operator with more bytes than LL carries well.
struct LargeBatch {
    abi::DeviceTeam team{};
    LargePart parts[kMostParts]{};
    std::int32_t count = 0;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    bool reduces = false;  // true: all_reduce, reduce_scatter; false: all_gather
    LaunchPlan plan{};
};

/// Pull of all peers' blocks by copy engines between two kernels.
struct Pull {
    abi::DeviceTeam team{};
    abi::PeerPointers peer_pointers{};  // of the inputs only
    std::byte* outputs[abi::kMostDevices]{};
    std::size_t bytes[abi::kMostDevices]{};
    /// Address from which a copy engine has pulled each block; null where none has.
    const std::byte* pulled[abi::kMostDevices]{};
    abi::CachedPointers* cached_pointers = nullptr;  // for the next launch of this key; or null
    LaunchPlan plan{};
};

/// A schedule's program over this rank's blocks, which all have one length.
struct ProgramLaunch {
    abi::DeviceTeam team{};
    abi::PeerPointers peer_pointers{};  // inputs[r]: this rank's program state for rank r
    abi::DeviceProgram program{};
    const std::byte* inputs[abi::kMostDevices]{};
    std::byte* outputs[abi::kMostDevices]{};
    std::size_t bytes = 0;  // of a block
    bool reduces = false;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    LaunchPlan plan{};
};

/// Blocks whose lengths only pairs of ranks have, through slots in host memory.
struct PairsLaunch {
    abi::DeviceTeam team{};
    abi::PeerPointers peer_pointers{};  // inputs[r]: bytes that this rank expects from rank r
    BlockPointers blocks{};             // by peer; bytes: of the inputs
    abi::DeviceStates states{};
    LaunchPlan plan{};
};

/// LL128 trial, once in a group.
struct Trial {
    abi::DeviceTeam team{};
    bool is_expected = true;  // whether success is expected; otherwise this rank reports failure
    bool is_loading = false;  // the kernel is loaded, and not launched
};

/// Clock questions of the host; null: the kernel is loaded, and not launched.
struct ClockLaunch {
    abi::ClockPings* pings = nullptr;
};

[[nodiscard]] constexpr bool is_sum(ReduceOp op) {
    return op == ReduceOp::kSum || op == ReduceOp::kAvg;
}

/// Returns whether sums of `type` have kernels of their own for every group size: gradients have
/// these types.
[[nodiscard]] constexpr bool has_hot_sum(DataType type) {
    return is_half(type) || type == DataType::kFloat32 || type == DataType::kComplex64;
}

/// Returns ok where device kernels reduce `type` by `op`; kUnsupported names both.
[[nodiscard]] Status check_reduction(DataType type, ReduceOp op);

/// Returns whether large batches support the reduction, too.
[[nodiscard]] constexpr bool reduces_in_large_batches(DataType type, ReduceOp op) {
    return has_hot_sum(type) && is_sum(op);
}

/// Returns ok where `plan` can carry a block of `bytes`; kInvalidArgument names the fault.
[[nodiscard]] Status check_plan(const LaunchPlan& plan, std::size_t bytes);

// Launches run in stream order; the result shows only whether the kernel was launched. kUnsupported
// in a build without CUDA.

/// Loads every kernel that a group of `ranks` may launch. CUDA would load a kernel at its first
/// launch, which may block until a running kernel ends that waits for this very rank.
[[nodiscard]] PCCL_API Status load_kernels(int ranks);

/// Launches an all_reduce; with a root, only that rank gets the result.
[[nodiscard]] Status launch_all_reduce(const Launch& launch, Stream stream);
/// Launches a reduce_scatter. Input: n blocks; output: this rank's block. peer_pointers.inputs[r]
/// is the block that rank r gets.
[[nodiscard]] Status launch_reduce_scatter(const Launch& launch, Stream stream);
/// Launches an all_gather. Input: this rank's block; output: n blocks. peer_pointers.outputs[r] is
/// where rank r stores. kLL requires blocks of equal length.
[[nodiscard]] Status launch_all_gather(const Launch& launch, Stream stream);
/// Launches an all_to_all. Input: n blocks; output: n blocks. Without kLL, blocks may have any
/// length, so this serves gather and scatter, too. peer_pointers.inputs[r] is the number of bytes
/// that this rank expects from rank r.
[[nodiscard]] Status launch_all_to_all(const Launch& launch, Stream stream);
[[nodiscard]] Status launch_broadcast(const Launch& launch, Stream stream);
[[nodiscard]] Status launch_batch(const BatchLaunch& batch, Stream stream);
[[nodiscard]] Status launch_large_batch(const LargeBatch& batch, Stream stream);
/// Launches the first kernel of a pull, one block: later work in the stream may load the peers'
/// inputs.
[[nodiscard]] Status launch_pull_begin(const Pull& pull, Stream stream);
/// Launches the second kernel of a pull: it copies blocks that were pulled from another address
/// than the peer's input, or not at all. Later work may overwrite this rank's input.
[[nodiscard]] Status launch_pull_end(const Pull& pull, Stream stream);
/// Launches messages. Those between a pair of ranks match in the order of their launches,
/// independent of all other launches.
[[nodiscard]] Status launch_messages(const MessageLaunch& messages, Stream stream);
/// Launches messages through host memory, which match likewise.
[[nodiscard]] Status launch_host_messages(const HostMessageLaunch& launch, Stream stream);
/// Launches an exchange of blocks by pairs of ranks.
[[nodiscard]] Status launch_pairs(const PairsLaunch& pairs, Stream stream);
/// Exchanges the addresses of the ranks' program states, which programs require; once.
[[nodiscard]] Status launch_state_exchange(const ProgramLaunch& run, Stream stream);
/// Launches the trial, which leaves its result in DeviceControl::ll128_trial.
[[nodiscard]] Status launch_ll128_trial(const Trial& trial, Stream stream);
/// Launches the clock kernel. It ends after the last answer, or when no question arrives.
[[nodiscard]] Status launch_clock(const ClockLaunch& clock, Stream stream);
/// Launches a program. Half types and fp8 are added in float32 and rounded at every hop. Integers
/// wrap at every hop, so programs do not average them.
[[nodiscard]] Status launch_program(const ProgramLaunch& run, Stream stream);

}  // namespace pccl::kernels
