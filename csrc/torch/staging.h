// SPDX-License-Identifier: Apache-2.0

// Contiguous memory for the tensors of one operation.
//
// A tensor whose elements are not contiguous in memory in their order (strided, conjugated) takes
// part through a contiguous stage. The stage is filled before the operation, and finish() copies it
// back. Results are thus right for every layout, at the cost of a copy. CUDA tensors go through
// host memory likewise, where GPUs cannot access each other.
//
// Where elements of a tensor share memory (as in expanded ones), finish() copies one element per
// location, provided that the results for that location are equal.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <pccl/status.h>

namespace pccl::backend {

class TensorStaging {
   public:
    enum class StagingPlace { kDevice, kHost };
    /// With kHost, CUDA tensors take part through pinned memory, after the work in the GPU's
    /// current stream.
    explicit TensorStaging(StagingPlace place = StagingPlace::kDevice) : place_(place) {}

    /// Returns the tensor or a copy; the Staging keeps it alive. A copy of a CUDA tensor in host
    /// memory is filled by load().
    at::Tensor readable(const at::Tensor& tensor);
    /// Returns the tensor, or memory that finish() copies into it.
    at::Tensor writable(const at::Tensor& tensor);
    /// Returns separate memory. finish() does not copy it, and returns the error `why` instead.
    at::Tensor refused(const at::Tensor& tensor, std::string why);
    /// Returns memory as writable() does, filled with the tensor's elements as by readable().
    at::Tensor updatable(const at::Tensor& tensor);
    /// Copies the elements [begin, end) of inputs from GPUs; they are in place on return. A strided
    /// tensor is copied as a whole with its first elements.
    void load(std::size_t begin, std::size_t end) const;
    void load() const { load(0, std::numeric_limits<std::size_t>::max()); }
    void hold(at::Tensor tensor) { held_.push_back(std::move(tensor)); }

    /// Calls body(tensor) for all memory that the operation and its copies use.
    template <typename Body>
    void for_each(Body body) const {
        for (const at::Tensor& tensor : held_) body(tensor);
        for (const StagedCopy& copy : copies_back_) {
            body(copy.stage);
            body(copy.user);
        }
    }

    /// Handling of outputs whose elements share memory: finish() compares their results and takes
    /// the first if they agree; takes the first without comparing, where results differ by rounding
    /// only; or returns an error.
    enum class Repeats { kCompared, kTrusted, kRefused };
    void set_repeats(Repeats repeats) { repeats_ = repeats; }
    /// Returns a digest of the output elements that share memory; 0: none do.
    [[nodiscard]] std::uint64_t overlap() const { return overlap_; }
    /// Returns the local reason where an operation ended with `status` because ranks disagree, and
    /// this rank refuses memory.
    [[nodiscard]] Status own_reason(const Status& status) const {
        const bool is_own = status.code() == StatusCode::kMismatch && !why_refused_.is_ok();
        return is_own ? why_refused_ : status;
    }
    /// Returns uninitialised memory for a copy; nullopt where the host has not so much.
    [[nodiscard]] std::optional<at::Tensor> try_to_stage(const at::Tensor& tensor) const;
    /// Returns whether there was no memory for a copy: then the memory that was returned for it has
    /// one element.
    [[nodiscard]] bool is_short() const { return is_short_; }
    /// Returns a copy's memory of one element, and makes finish() return kResourceExhausted.
    at::Tensor fall_short(const at::Tensor& tensor);
    /// Returns the error that finish() will return in any case, or ok.
    [[nodiscard]] const Status& why_refused() const { return why_refused_; }

    /// Copies the results back; call it once, after success. Copies to GPUs are complete on return,
    /// where the place is the host. Returns kInvalidArgument, and copies nothing, where one
    /// location would get different elements.
    [[nodiscard]] Status finish() const;

   private:
    struct StagedCopy {
        at::Tensor stage;
        at::Tensor user;
        bool repeats = false;  // elements of `user` share memory
    };
    [[nodiscard]] Status check_repeats() const;
    void fill(const at::Tensor& stage, const at::Tensor& user);

    [[nodiscard]] bool needs_stage(const at::Tensor& tensor) const;
    [[nodiscard]] at::Tensor stage(const at::Tensor& tensor) const;
    void refuse(Status why) {
        if (why_refused_.is_ok()) why_refused_ = std::move(why);
    }

    StagingPlace place_;
    c10::SmallVector<at::Tensor, 2> held_;
    std::vector<StagedCopy> loads_;
    std::vector<StagedCopy> copies_back_;
    std::uint64_t overlap_ = 0;
    Repeats repeats_ = Repeats::kCompared;
    Status why_refused_{};  // returned by finish()
    bool is_short_ = false;
};

}  // namespace pccl::backend
