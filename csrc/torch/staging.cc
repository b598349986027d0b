#include "csrc/torch/staging.h"

#include <algorithm>

#include "csrc/torch/tensors.h"

namespace pccl::backend {

bool Staging::needs_stage(const at::Tensor& tensor) const {
    return needs_staging(tensor) || (place_ == Place::kHost && tensor.is_cuda());
}

at::Tensor Staging::stage(const at::Tensor& tensor) const {
    return place_ == Place::kHost && tensor.is_cuda() ? pinned_stage_for(tensor)
                                                      : stage_for(tensor);
}

at::Tensor Staging::readable(const at::Tensor& tensor) {
    if (!needs_stage(tensor)) {
        held_.push_back(tensor);
        return tensor;
    }
    at::Tensor memory = stage(tensor);
    held_.push_back(memory);
    fill(memory, tensor);
    return memory;
}

at::Tensor Staging::updatable(const at::Tensor& tensor) {
    at::Tensor memory = writable(tensor);
    if (!memory.is_same(tensor)) fill(memory, tensor);
    return memory;
}

void Staging::fill(const at::Tensor& stage, const at::Tensor& user) {
    if (user.device() == stage.device()) {
        copy_elements(stage, user);
        held_.push_back(user);
    } else {
        loads_.push_back({stage, user});
    }
}

void Staging::load(std::size_t begin, std::size_t end) const {
    for (const Copy& copy : loads_) {
        const auto count = static_cast<std::size_t>(copy.user.numel());
        if (!needs_staging(copy.user)) {
            copy_range(copy.stage, copy.user, std::min(begin, count), std::min(end, count));
        } else if (begin == 0) {
            copy_elements(copy.stage, copy.user);
        }
    }
}

at::Tensor Staging::writable(const at::Tensor& tensor) {
    if (!needs_stage(tensor)) {
        held_.push_back(tensor);
        return tensor;
    }
    // What the GPU still has to do may use the memory that finish() writes, on another stream.
    if (place_ == Place::kHost && tensor.is_cuda()) await_current_stream(tensor.device());
    copies_back_.push_back({stage(tensor), tensor});
    return copies_back_.back().stage;
}

void Staging::finish() const {
    for (const Copy& copy : copies_back_) {
        if (place_ == Place::kHost && copy.user.is_cuda()) {
            copy_to_gpu(copy.user, copy.stage);
            await_current_stream(copy.user.device());
        } else {
            copy_elements(copy.user, copy.stage);
        }
    }
}

}  // namespace pccl::backend
