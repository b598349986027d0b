// Contiguous memory for the tensors of one operation.
//
// A tensor whose memory is not its elements in order (strided, conjugated) takes part through a
// contiguous stage: filled before the operation, copied back after it by finish(). So results are
// right for every layout, at the price of a copy. So do CUDA tensors through host memory, where
// GPUs do not reach each other.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <limits>
#include <vector>

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
    /// The same, with the tensor's elements in it as in what readable() returns.
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

    /// Once, after success. What it copied to GPUs is there on return, where the place is the host.
    void finish() const;

   private:
    struct Copy {
        at::Tensor stage;
        at::Tensor user;
    };
    void fill(const at::Tensor& stage, const at::Tensor& user);

    [[nodiscard]] bool needs_stage(const at::Tensor& tensor) const;
    [[nodiscard]] at::Tensor stage(const at::Tensor& tensor) const;

    Place place_;
    c10::SmallVector<at::Tensor, 2> held_;
    std::vector<Copy> loads_;
    std::vector<Copy> copies_back_;
};

}  // namespace pccl::backend
