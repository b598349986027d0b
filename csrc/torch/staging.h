// Contiguous memory for the tensors of one operation.
//
// A tensor whose memory is not its elements in order (strided, conjugated) takes part through a
// contiguous stage: filled before the operation, copied back after it by finish(). So results are
// right for every layout, at the price of a copy.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <vector>

namespace pccl::backend {

class Staging {
   public:
    /// The tensor, or a copy. The Staging keeps what it returns alive.
    at::Tensor readable(const at::Tensor& tensor);
    /// The tensor, or memory that finish() copies into it.
    at::Tensor writable(const at::Tensor& tensor);
    void hold(at::Tensor tensor) { held_.push_back(std::move(tensor)); }

    /// Calls body(tensor) for all memory that the operation uses.
    template <typename Body>
    void for_each(Body body) const {
        for (const at::Tensor& tensor : held_) body(tensor);
        for (const CopyBack& copy : copies_back_) body(copy.stage);
    }

    /// Once, after success.
    void finish() const;

   private:
    struct CopyBack {
        at::Tensor stage;
        at::Tensor user;
    };

    c10::SmallVector<at::Tensor, 2> held_;
    std::vector<CopyBack> copies_back_;
};

}  // namespace pccl::backend
