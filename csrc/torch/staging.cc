#include "csrc/torch/staging.h"

#include "csrc/torch/tensors.h"

namespace pccl::backend {

at::Tensor Staging::readable(const at::Tensor& tensor) {
    held_.push_back(needs_staging(tensor) ? staged_copy(tensor) : tensor);
    return held_.back();
}

at::Tensor Staging::writable(const at::Tensor& tensor) {
    if (!needs_staging(tensor)) {
        held_.push_back(tensor);
        return tensor;
    }
    copies_back_.push_back({stage_for(tensor), tensor});
    return copies_back_.back().stage;
}

void Staging::finish() const {
    for (const CopyBack& copy : copies_back_) copy_elements(copy.user, copy.stage);
}

}  // namespace pccl::backend
