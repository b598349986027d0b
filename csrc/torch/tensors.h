// SPDX-License-Identifier: Apache-2.0

// Properties of tensors for the communicator: element types, reductions, contiguous memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>

#include <pccl/types.h>
#include "csrc/base/ids.h"
#include "csrc/collective/collective.h"
#include "csrc/torch/compat.h"

namespace pccl::backend {

/// Encoding of one element of a tensor: `units` elements of `type`.
struct Encoding {
    DataType type = DataType::kBytes;
    std::size_t units = 1;
};

/// A reduction. With a factor, inputs are multiplied by it first (torch's PREMUL_SUM).
struct TensorReduction {
    ReduceOp op = ReduceOp::kSum;
    std::optional<double> factor;
};

/// Returns the encoding for moves, which support every type: types that cannot be reduced
/// (quantised ones) travel as bytes.
[[nodiscard]] Encoding encoding_for_moves(at::ScalarType type);
/// Returns the encoding for reductions. Throws NotImplementedError for types that cannot be
/// reduced. float8 is reduced on GPUs only.
[[nodiscard]] Encoding encoding_for_reductions(at::ScalarType type, ReduceOp op, bool is_on_host);
/// Throws ValueError for torch's UNUSED, and for PREMUL_SUM without its factor.
[[nodiscard]] TensorReduction reduction_of(const c10d::ReduceOp& op);

/// Throws unless `tensor` is a dense tensor on the CPU or a CUDA device.
void check_tensor(const at::Tensor& tensor);

/// Returns whether the tensor's memory differs from its elements in order.
[[nodiscard]] bool needs_staging(const at::Tensor& tensor);
/// Returns uninitialised contiguous memory of the same shape and type.
[[nodiscard]] at::Tensor stage_for(const at::Tensor& tensor);
/// Returns a stage as stage_for() does, in pinned host memory.
[[nodiscard]] at::Tensor pinned_stage_for(const at::Tensor& tensor);
/// Waits until `device` has done the work in this thread's current stream.
void await_current_stream(const at::Device& device);
/// Copies pinned memory to a GPU, in its current stream.
void copy_to_gpu(const at::Tensor& to, const at::Tensor& from);
/// Returns a contiguous copy.
[[nodiscard]] at::Tensor staged_copy(const at::Tensor& tensor);
/// Returns a contiguous copy times `factor`, on the tensor's device.
[[nodiscard]] at::Tensor scaled_copy(const at::Tensor& tensor, double factor);
/// Copies `from` to `to` without recording for autograd.
void copy_elements(const at::Tensor& to, const at::Tensor& from);
/// Copies the elements [begin, end) of contiguous tensors, as copy_elements() does.
void copy_range(const at::Tensor& to, const at::Tensor& from, std::size_t begin, std::size_t end);

/// Returns the memory of a contiguous tensor. Reading does not unshare copy-on-write memory.
[[nodiscard]] Block block_to_read(const at::Tensor& tensor, Encoding encoding);
[[nodiscard]] Block block_to_write(const at::Tensor& tensor, Encoding encoding);

}  // namespace pccl::backend
