// What every collective's launch takes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/abi/datatype.h"
#include "csrc/abi/device_team.h"
#include "csrc/base/status.h"
#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// CUstream.
using Stream = void*;

/// One collective of a group, on this rank. `count` is of elements in one block: the whole tensor
/// for all_reduce and broadcast, what one rank contributes or gets for the others.
struct Launch {
    abi::DeviceTeam team{};
    abi::Postings postings{};  // where the peers see input and output; not for kWords
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    std::size_t count = 0;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    std::int32_t root = 0;
    Plan plan{};
};

/// Whether device kernels reduce `type` by `op`; kUnsupported names both.
[[nodiscard]] Status check_reduction(DataType type, ReduceOp op);

/// Whether `plan` can carry a block of `bytes`; kInvalidArgument says what is wrong.
[[nodiscard]] Status check_plan(const Plan& plan, std::size_t bytes);

// In stream order; the return says only whether the kernel was launched. kUnsupported in a build
// without CUDA.

[[nodiscard]] Status launch_all_reduce(const Launch& launch, Stream stream);
/// Input: n blocks; output: this rank's block.
[[nodiscard]] Status launch_reduce_scatter(const Launch& launch, Stream stream);
/// Input: this rank's block; output: n blocks. postings.outputs[r] is where rank r stores.
[[nodiscard]] Status launch_all_gather(const Launch& launch, Stream stream);
/// Input and output: n blocks. postings.outputs[r] is where rank r stores.
[[nodiscard]] Status launch_all_to_all(const Launch& launch, Stream stream);
[[nodiscard]] Status launch_broadcast(const Launch& launch, Stream stream);

}  // namespace pccl::kernels
