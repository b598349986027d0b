// Contiguous memory for the tensors of one operation.
//
// A tensor whose memory is not its elements in order (strided, conjugated) takes part through a
// contiguous stage: filled before the operation, copied back after it by finish(). So results are
// right for every layout, at the price of a copy. So do CUDA tensors through host memory, where
// GPUs do not reach each other.
//
// Where elements of a tensor share memory (expanded ones do), finish() copies one of each, given
// that what came for all of them is the same.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "csrc/base/status.h"

namespace pccl::backend {

class Staging {
   public:
    enum class Place { kDevice, kHost };
    /// With kHost, CUDA tensors take part through pinned memory, once their GPU has done what the
    /// current stream holds.
    explicit Staging(Place place = Place::kDevice) : place_(place) {}

    /// The tensor, or a copy; of CUDA tensors through the host, only once load() was called. The
    /// Staging keeps what it returns alive.
    at::Tensor readable(const at::Tensor& tensor);
    /// The tensor, or memory that finish() copies into it.
    at::Tensor writable(const at::Tensor& tensor);
    /// Memory of its own, which finish() copies nowhere: it refuses the call instead.
    at::Tensor refused(const at::Tensor& tensor, std::string why);
    /// The same as writable(), with the tensor's elements in it as in what readable() returns.
    at::Tensor updatable(const at::Tensor& tensor);
    /// Copies elements [begin, end) of what is read from GPUs; they are there on return. Those of a
    /// strided tensor come all at once, with the first.
    void load(std::size_t begin, std::size_t end) const;
    void load() const { load(0, std::numeric_limits<std::size_t>::max()); }
    void hold(at::Tensor tensor) { held_.push_back(std::move(tensor)); }

    /// Calls body(tensor) for all memory that the operation uses, and that copies to and from it
    /// do.
    template <typename Body>
    void for_each(Body body) const {
        for (const at::Tensor& tensor : held_) body(tensor);
        for (const Copy& copy : copies_back_) {
            body(copy.stage);
            body(copy.user);
        }
    }

    /// What finish() does where elements of what is written share memory: compares what came for
    /// them, takes the first, given that the others are the same but for rounding, or refuses.
    enum class Repeats { kCompared, kTrusted, kRefused };
    void set_repeats(Repeats repeats) { repeats_ = repeats; }
    /// A digest of which elements of what is written share memory; 0: none do.
    [[nodiscard]] std::uint64_t overlap() const { return overlap_; }
    /// Of an operation that ended with `status`: where ranks differ as this one refuses memory,
    /// why.
    [[nodiscard]] Status own_reason(const Status& status) const {
        const bool is_own = status.code() == StatusCode::kMismatch && !why_refused_.is_ok();
        return is_own ? why_refused_ : status;
    }
    /// What finish() will return whatever comes; ok: that depends.
    [[nodiscard]] const Status& why_refused() const { return why_refused_; }

    /// Once, after success. What it copied to GPUs is there on return, where the place is the host.
    /// kInvalidArgument, and nothing is copied, where one memory would be written with different
    /// elements.
    [[nodiscard]] Status finish() const;

   private:
    struct Copy {
        at::Tensor stage;
        at::Tensor user;
        bool repeats = false;  // elements of `user` share memory
    };
    [[nodiscard]] Status check_repeats() const;
    void fill(const at::Tensor& stage, const at::Tensor& user);

    [[nodiscard]] bool needs_stage(const at::Tensor& tensor) const;
    [[nodiscard]] at::Tensor stage(const at::Tensor& tensor) const;

    Place place_;
    c10::SmallVector<at::Tensor, 2> held_;
    std::vector<Copy> loads_;
    std::vector<Copy> copies_back_;
    std::uint64_t overlap_ = 0;
    Repeats repeats_ = Repeats::kCompared;
    Status why_refused_{};  // by finish()
};

}  // namespace pccl::backend
