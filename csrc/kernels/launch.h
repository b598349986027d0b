// What every collective's launch takes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/abi/clock_pings.h"
#include "csrc/abi/datatype.h"
#include "csrc/abi/device_program.h"
#include "csrc/abi/device_team.h"
#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// CUstream.
using Stream = void*;

/// This rank's blocks, by the rank that they come from or go to; entry 0 where a side is one block.
struct Blocks {
    const std::byte* inputs[abi::kMostDevices];
    std::byte* outputs[abi::kMostDevices];
    std::size_t bytes[abi::kMostDevices];  // of the one block; all_to_all: of each input
};

inline constexpr std::int32_t kNoRoot = -1;

/// One collective of a group, on this rank.
struct Launch {
    abi::DeviceTeam team{};
    abi::PeerPointers peer_pointers{};  // where the peers see the blocks; not for kLL
    Blocks blocks{};
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    std::int32_t root = kNoRoot;
    Plan plan{};
};

/// A message of this rank to or from `peer`.
struct Message {
    std::byte* data = nullptr;
    std::uint64_t peer_address = 0;  // of what is received: its address for `peer`
    std::size_t bytes = 0;
    std::int32_t peer = 0;
};

/// In one launch: at most one message to each rank, and one from each.
struct Messages {
    abi::DeviceTeam team{};
    Message sent[abi::kMostDevices]{};
    Message received[abi::kMostDevices]{};
    std::int32_t sends = 0;
    std::int32_t receives = 0;
    std::int32_t blocks = 1;  // of each message that is sent
};

inline constexpr int kMostParts = 24;  // of a batch: as many as kernels take as parameters

/// One collective of a batch: entry r is what rank r gets, or where rank r's goes; a side of one
/// block is the same for all.
struct Part {
    const std::byte* inputs[abi::kMostDevices];
    std::byte* outputs[abi::kMostDevices];
    std::uint32_t bytes;       // of a block
    std::uint32_t first_word;  // of the batch's; its end is filled up to a whole one
};

/// Collectives of one kind, type and operator.
struct Batch {
    abi::DeviceTeam team{};
    Part parts[kMostParts]{};
    std::int32_t count = 0;
    std::uint32_t words = 0;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    bool reduces = false;  // all_reduce, reduce_scatter; else all_gather
    Plan plan{};
};

/// One collective of a large batch, which has blocks of the launch to itself.
struct LargePart {
    abi::PeerPointers peer_pointers;
    const std::byte* input;  // all_gather: the block that this rank gives
    std::byte* output;       // reduce_scatter: the block that this rank gets; else null
    std::size_t bytes;       // of a block
    std::int32_t first_block;
    std::int32_t blocks;
};

/// Collectives of one kind, type and operator, of more bytes than LL carries well.
struct LargeBatch {
    abi::DeviceTeam team{};
    LargePart parts[kMostParts]{};
    std::int32_t count = 0;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    bool reduces = false;  // all_reduce, reduce_scatter; else all_gather
    Plan plan{};
};

/// What this rank gets from each, by copy engines between two kernels.
struct Pull {
    abi::DeviceTeam team{};
    abi::PeerPointers peer_pointers{};  // of the inputs alone
    std::byte* outputs[abi::kMostDevices]{};
    std::size_t bytes[abi::kMostDevices]{};
    /// Where a copy engine has taken each from; null where none has.
    const std::byte* pulled[abi::kMostDevices]{};
    abi::CachedPointers* cached_pointers = nullptr;  // for the next launch of the like; may be null
    Plan plan{};
};

/// A schedule's program over this rank's blocks, which are all of one length.
struct Run {
    abi::DeviceTeam team{};
    abi::PeerPointers peer_pointers{};  // inputs[r]: where rank r sees this rank's program state
    abi::DeviceProgram program{};
    const std::byte* inputs[abi::kMostDevices]{};
    std::byte* outputs[abi::kMostDevices]{};
    std::size_t bytes = 0;  // of a block
    bool reduces = false;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    Plan plan{};
};

/// Of LL128, once in a group.
struct Trial {
    abi::DeviceTeam team{};
    bool is_expected = true;  // to go well: else this rank says that it has not
    bool is_loading = false;  // the kernel is loaded, and not launched
};

/// Questions of the host to be answered; null: the kernel is loaded, and not launched.
struct Clock {
    abi::ClockPings* pings = nullptr;
};

[[nodiscard]] constexpr bool is_sum(ReduceOp op) {
    return op == ReduceOp::kSum || op == ReduceOp::kAvg;
}

/// Whether sums of `type` have kernels of their own, for every size of group: gradients are made of
/// these.
[[nodiscard]] constexpr bool has_hot_sum(DataType type) {
    return is_half(type) || type == DataType::kFloat32 || type == DataType::kComplex64;
}

/// Whether device kernels reduce `type` by `op`; kUnsupported names both.
[[nodiscard]] Status check_reduction(DataType type, ReduceOp op);

/// Whether a large batch may reduce so, too.
[[nodiscard]] constexpr bool reduces_in_large_batches(DataType type, ReduceOp op) {
    return has_hot_sum(type) && is_sum(op);
}

/// Whether `plan` can carry a block of `bytes`; kInvalidArgument says what is wrong.
[[nodiscard]] Status check_plan(const Plan& plan, std::size_t bytes);

// In stream order; the return says only whether the kernel was launched. kUnsupported in a build
// without CUDA.

/// Loads every kernel that a group of `ranks` may launch. CUDA would do so when it is first
/// launched, and may then wait for a kernel that waits for this very rank.
[[nodiscard]] PCCL_API Status load_kernels(int ranks);

/// With a root, only that rank gets the result.
[[nodiscard]] Status launch_all_reduce(const Launch& launch, Stream stream);
/// Input: n blocks; output: this rank's block. peer_pointers.inputs[r] is what rank r gets.
[[nodiscard]] Status launch_reduce_scatter(const Launch& launch, Stream stream);
/// Input: this rank's block; output: n blocks. peer_pointers.outputs[r] is where rank r stores. Not
/// by kLL where blocks differ in length.
[[nodiscard]] Status launch_all_gather(const Launch& launch, Stream stream);
/// The same with n blocks of input. Without kLL blocks may have any length, so this is gather
/// and scatter, too; peer_pointers.inputs[r] is how many bytes this rank expects of rank r.
[[nodiscard]] Status launch_all_to_all(const Launch& launch, Stream stream);
[[nodiscard]] Status launch_broadcast(const Launch& launch, Stream stream);
[[nodiscard]] Status launch_batch(const Batch& batch, Stream stream);
[[nodiscard]] Status launch_large_batch(const LargeBatch& batch, Stream stream);
/// One block: what follows in the stream may load the peers' inputs.
[[nodiscard]] Status launch_pull_begin(const Pull& pull, Stream stream);
/// Gets what was pulled from another place than the peer's input, or not at all; what follows may
/// overwrite this rank's input.
[[nodiscard]] Status launch_pull_end(const Pull& pull, Stream stream);
/// Messages between a pair of ranks meet in the order of their launches there, apart from
/// everything else.
[[nodiscard]] Status launch_messages(const Messages& messages, Stream stream);
/// Exchanges the addresses of the ranks' program states, which programs rely on; once.
[[nodiscard]] Status launch_state_exchange(const Run& run, Stream stream);
/// Leaves in DeviceControl::ll128_trial how it went.
[[nodiscard]] Status launch_ll128_trial(const Trial& trial, Stream stream);
/// Ends after the last answer, or when no question comes.
[[nodiscard]] Status launch_clock(const Clock& clock, Stream stream);
/// Half types and fp8 are added in float32 and rounded at every hop. Integers wrap at every hop, so
/// that these make no averages of them.
[[nodiscard]] Status launch_program(const Run& run, Stream stream);

}  // namespace pccl::kernels
