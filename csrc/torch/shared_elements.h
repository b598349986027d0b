// Tensors of which several elements are one place in memory: expanded ones (stride 0), and windows
// that overlap.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pccl::backend {

/// Which elements of a tensor share memory.
struct SharedElements {
    std::uint64_t digest = 0;  // the same where the same ones do; 0: none do
    bool is_regular = true;    // all or none along each dimension

    [[nodiscard]] bool is_any() const { return digest != 0; }
};
[[nodiscard]] SharedElements shared_elements(const at::Tensor& tensor);

/// Whether some memory belongs to two of these tensors, which have one element type.
[[nodiscard]] bool share_memory(const std::vector<at::Tensor>& tensors);

/// Whether the elements of `stage` are alike, bit by bit, where those of `tensor`, which has its
/// shape and is regular, share memory.
[[nodiscard]] bool repeats_alike(const at::Tensor& stage, const at::Tensor& tensor);
/// Copies the first of the elements of `stage` that share memory in `tensor` there, without
/// autograd taking note. `tensor` is regular.
void copy_first_of_shared(const at::Tensor& tensor, const at::Tensor& stage);

}  // namespace pccl::backend
