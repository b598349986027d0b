// SPDX-License-Identifier: Apache-2.0

// Tensors with several elements at one memory location: expanded tensors (stride 0), and
// overlapping windows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pccl::backend {

/// Which elements of a tensor share memory.
struct SharedElements {
    std::uint64_t digest = 0;  // equal where the same elements share memory; 0: none do
    bool is_regular = true;    // along each dimension, all elements share memory or none do

    [[nodiscard]] bool is_any() const { return digest != 0; }
};
[[nodiscard]] SharedElements shared_elements(const at::Tensor& tensor);

/// Returns whether two of these tensors overlap in memory. All have one element type.
[[nodiscard]] bool share_memory(const std::vector<at::Tensor>& tensors);

/// Returns whether elements of `stage` are bitwise equal wherever the elements of `tensor` share
/// memory. `tensor` is regular and has the same shape.
[[nodiscard]] bool repeats_alike(const at::Tensor& stage, const at::Tensor& tensor);
/// Copies from `stage` the first of the elements that share memory in `tensor`, without recording
/// for autograd. `tensor` is regular.
void copy_first_of_shared(const at::Tensor& tensor, const at::Tensor& stage);

}  // namespace pccl::backend
