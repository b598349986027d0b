// Tensors as the communicator sees them: element types, reductions, contiguous memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>

#include "csrc/abi/datatype.h"
#include "csrc/base/ids.h"
#include "csrc/collective/collective.h"
#include "csrc/torch/compat.h"

namespace pccl::backend {

/// How one element of a tensor travels: as `units` elements of `type`.
struct Encoding {
    DataType type = DataType::kBytes;
    std::size_t units = 1;
};

/// A reduction; with a factor, inputs are multiplied by it first (torch's PREMUL_SUM).
struct Reduction {
    ReduceOp op = ReduceOp::kSum;
    std::optional<double> factor;
};

/// Every type can be moved: those that cannot be reduced (quantised ones) go as bytes.
[[nodiscard]] Encoding encoding_for_moves(at::ScalarType type);
/// Throws NotImplementedError for types that cannot be reduced. float8 is reduced on GPUs alone.
[[nodiscard]] Encoding encoding_for_reductions(at::ScalarType type, ReduceOp op, bool is_on_host);
/// Throws ValueError for torch's UNUSED, and for PREMUL_SUM without its factor.
[[nodiscard]] Reduction reduction_of(const c10d::ReduceOp& op);

/// Throws unless `tensor` is a dense tensor of the CPU or a CUDA device.
void check_tensor(const at::Tensor& tensor);

/// Whether the tensor's memory, read from front to back, is not its elements in order.
[[nodiscard]] bool needs_staging(const at::Tensor& tensor);
/// Uninitialised contiguous memory of the same shape and type.
[[nodiscard]] at::Tensor stage_for(const at::Tensor& tensor);
/// The same in host memory that GPUs reach.
[[nodiscard]] at::Tensor pinned_stage_for(const at::Tensor& tensor);
/// Waits until `device` has done what this thread's current stream of it holds.
void await_current_stream(const at::Device& device);
/// Copies pinned memory to a GPU, in its current stream.
void copy_to_gpu(const at::Tensor& to, const at::Tensor& from);
/// A contiguous copy.
[[nodiscard]] at::Tensor staged_copy(const at::Tensor& tensor);
/// A contiguous copy times `factor`, on the tensor's device.
[[nodiscard]] at::Tensor scaled_copy(const at::Tensor& tensor, double factor);
/// to = from, without autograd taking note.
void copy_elements(const at::Tensor& to, const at::Tensor& from);
/// The same for elements [begin, end) of contiguous tensors.
void copy_range(const at::Tensor& to, const at::Tensor& from, std::size_t begin, std::size_t end);

/// The memory of a contiguous tensor. Reading does not unshare copy-on-write memory.
[[nodiscard]] Block block_to_read(const at::Tensor& tensor, Encoding encoding);
[[nodiscard]] Block block_to_write(const at::Tensor& tensor, Encoding encoding);

}  // namespace pccl::backend
