// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/staging.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/base/writable.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/torch/shared_elements.h"
#include "csrc/torch/tensors.h"

namespace pccl::backend {
namespace {

constexpr const char* kInstead =
    "; give a tensor whose elements have memory of their own, such as x.contiguous(), and copy the "
    "result back";

/// Returns, for example, "a tensor of sizes [2, 3] and strides [0, 1]".
std::string layout_of(const at::Tensor& tensor) {
    return c10::str("a tensor of sizes ", tensor.sizes(), " and strides ", tensor.strides());
}

/// Cache of writable storages, per thread, because a query to the kernel takes a noticeable part of
/// a small collective. The mapping does not change while the storage lives.
class WritableStorages {
   public:
    bool has(const c10::Storage& storage) {
        const auto is_this = [&](const Known& known) {
            return known._unsafe_get_target() == storage.unsafeGetStorageImpl();
        };
        if (std::ranges::any_of(known_, is_this)) return true;
        const auto* const data = static_cast<const std::byte*>(storage.data());
        if (!is_writable({data, storage.nbytes()})) return false;
        known_[next_++ % known_.size()] = Known(storage.getWeakStorageImpl());
        return true;
    }

   private:
    using Known = c10::weak_intrusive_ptr<c10::StorageImpl>;

    std::array<Known, 4> known_{none(), none(), none(), none()};
    std::size_t next_ = 0;

    static Known none() { return Known(c10::intrusive_ptr<c10::StorageImpl>()); }
};

/// Returns false where a write is certain to fail. Memory that torch has allocated is writable.
bool may_be_written(const at::Tensor& tensor) {
    if (!tensor.is_cpu() || tensor.numel() == 0) return true;
    const c10::Storage& storage = tensor.storage();
    const c10::DeleterFnPtr deleter = storage.data_ptr().get_deleter();
    if (deleter == c10::GetDefaultCPUAllocator()->raw_deleter()) return true;
    thread_local WritableStorages known;
    return known.has(storage);
}

}  // namespace

bool TensorStaging::needs_stage(const at::Tensor& tensor) const {
    return needs_staging(tensor) || (place_ == StagingPlace::kHost && tensor.is_cuda());
}

at::Tensor TensorStaging::stage(const at::Tensor& tensor) const {
    return place_ == StagingPlace::kHost && tensor.is_cuda() ? pinned_stage_for(tensor)
                                                             : stage_for(tensor);
}

at::Tensor TensorStaging::readable(const at::Tensor& tensor) {
    if (!needs_stage(tensor)) {
        held_.push_back(tensor);
        return tensor;
    }
    const std::optional<at::Tensor> memory = try_to_stage(tensor);
    if (!memory) return fall_short(tensor);
    held_.push_back(*memory);
    fill(*memory, tensor);
    return *memory;
}

at::Tensor TensorStaging::updatable(const at::Tensor& tensor) {
    at::Tensor memory = writable(tensor);
    if (!memory.is_same(tensor) && !is_short_) fill(memory, tensor);
    return memory;
}

void TensorStaging::fill(const at::Tensor& stage, const at::Tensor& user) {
    if (user.device() == stage.device()) {
        copy_elements(stage, user);
        held_.push_back(user);
    } else {
        loads_.push_back({stage, user});
    }
}

void TensorStaging::load(std::size_t begin, std::size_t end) const {
    for (const StagedCopy& copy : loads_) {
        const auto count = static_cast<std::size_t>(copy.user.numel());
        if (!needs_staging(copy.user)) {
            copy_range(copy.stage, copy.user, std::min(begin, count), std::min(end, count));
        } else if (begin == 0) {
            copy_elements(copy.stage, copy.user);
        }
    }
}

at::Tensor TensorStaging::writable(const at::Tensor& tensor) {
    if (!may_be_written(tensor))
        return refused(tensor, concat(layout_of(tensor),
                                      " is read-only memory, such as that of a file mapped "
                                      "read-only; give a copy, x.clone()"));
    if (!needs_stage(tensor)) {
        held_.push_back(tensor);
        return tensor;
    }
    const SharedElements shared = shared_elements(tensor);
    const bool is_refused = !shared.is_regular || repeats_ == Repeats::kRefused;
    if (shared.is_any() && is_refused)
        return refused(tensor,
                       concat("elements of ", layout_of(tensor), " share memory", kInstead));
    if (shared.is_any()) overlap_ = mixed(overlap_, shared.digest) | 1U;
    // Pending work of the GPU may use the memory that finish() writes, on another stream.
    if (place_ == StagingPlace::kHost && tensor.is_cuda()) await_current_stream(tensor.device());
    std::optional<at::Tensor> memory = try_to_stage(tensor);
    if (!memory) return fall_short(tensor);
    copies_back_.push_back({*std::move(memory), tensor, shared.is_any()});
    return copies_back_.back().stage;
}

at::Tensor TensorStaging::refused(const at::Tensor& tensor, std::string why) {
    refuse(Status::invalid_argument(std::move(why)));
    const std::optional<at::Tensor> memory = try_to_stage(tensor);
    if (!memory) return fall_short(tensor);
    held_.push_back(*memory);
    return *memory;
}

std::optional<at::Tensor> TensorStaging::try_to_stage(const at::Tensor& tensor) const {
    const bool is_in_gpu = tensor.is_cuda() && place_ == StagingPlace::kDevice;
    if (is_in_gpu) return stage(tensor);
    try {
        return stage(tensor);
    } catch (const c10::Error&) {
        return std::nullopt;
    }
}

at::Tensor TensorStaging::fall_short(const at::Tensor& tensor) {
    refuse(Status::resource_exhausted(
        concat("this process has no memory for a copy of ", layout_of(tensor))));
    is_short_ = true;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    held_.push_back(at::empty({}, at::TensorOptions(tensor.scalar_type())));
    return held_.back().expand(tensor.sizes());
}

Status TensorStaging::check_repeats() const {
    if (repeats_ == Repeats::kTrusted) return Status::ok();
    for (const StagedCopy& copy : copies_back_)
        if (copy.repeats && !repeats_alike(copy.stage, copy.user))
            return Status::invalid_argument(concat(
                "different elements were received for one place in memory, which elements of ",
                layout_of(copy.user), " share", kInstead));
    return Status::ok();
}

Status TensorStaging::finish() const {
    PCCL_TRY(why_refused_);
    PCCL_TRY(check_repeats());
    for (const StagedCopy& copy : copies_back_) {
        const bool goes_to_gpu = place_ == StagingPlace::kHost && copy.user.is_cuda();
        if (copy.repeats)
            copy_first_of_shared(copy.user, copy.stage);
        else if (goes_to_gpu)
            copy_to_gpu(copy.user, copy.stage);
        else
            copy_elements(copy.user, copy.stage);
        if (goes_to_gpu) await_current_stream(copy.user.device());
    }
    return Status::ok();
}

}  // namespace pccl::backend
