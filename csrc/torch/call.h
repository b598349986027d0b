// A collective over tensors, made ready for the communicator.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <span>
#include <vector>

#include "csrc/collective/collective.h"
#include "csrc/torch/staging.h"
#include "csrc/torch/tensors.h"

namespace pccl::backend {

class Call {
   public:
    /// What all tensors of a call share: they are like `tensor`, and take part at `place`.
    struct Sample {
        const at::Tensor& tensor;
        Staging::Place place = Staging::Place::kDevice;
    };
    Call(CollectiveKind kind, const Sample& sample, Rank root = 0);
    Call(CollectiveKind kind, const Sample& sample, const Reduction& reduction, Rank root = 0);

    /// One input block: all of `tensor`.
    void read(const at::Tensor& tensor);
    /// One output block.
    void write(const at::Tensor& tensor);
    /// One for each.
    void write_all(const std::vector<at::Tensor>& tensors);
    /// The input block of a broadcast's root, and its output, which is not written.
    void give(const at::Tensor& tensor);
    /// One input and one output block, the same memory where possible.
    void update(const at::Tensor& tensor);
    /// Consecutive parts of `whole`, one block each; `lengths` are elements.
    void read_parts(const at::Tensor& whole, std::span<const std::size_t> lengths);
    void write_parts(const at::Tensor& whole, std::span<const std::size_t> lengths);

    void mark_barrier() { is_barrier_ = true; }
    /// Says that blocks may differ in length on some rank. Of an all_to_all it is the same on all.
    void mark_uneven() { is_uneven_ = true; }

    /// Valid as long as this Call is neither moved nor changed.
    [[nodiscard]] Collective collective() const;
    /// How many pieces to run it in: several where elements come from a GPU through the host, so
    /// that the next piece is copied while one travels. The same on all ranks.
    [[nodiscard]] std::size_t pieces() const;
    /// One of them, its input there. Valid as collective() is, until the next piece.
    [[nodiscard]] Collective piece(std::size_t index);
    [[nodiscard]] Staging& staging() { return staging_; }
    /// Whether staging().finish() may fail here while other ranks have taken it for done.
    [[nodiscard]] bool may_fail_alone() const;
    /// Of all its tensors.
    [[nodiscard]] at::Device device() const { return device_; }
    /// Whether its blocks are memory of the host.
    [[nodiscard]] bool is_on_host() const { return is_on_host_; }

   private:
    using Blocks = c10::SmallVector<Block, 4>;

    [[nodiscard]] at::Tensor readable(const at::Tensor& tensor);
    [[nodiscard]] at::Tensor writable(const at::Tensor& tensor);
    void append_parts(Blocks& blocks, Block whole, std::span<const std::size_t> lengths) const;
    void check(const at::Tensor& tensor) const;
    [[nodiscard]] at::Tensor premultiplied(const at::Tensor& tensor) const;

    CollectiveKind kind_;
    at::ScalarType scalar_type_;
    at::Device device_;
    bool is_on_host_;
    Reduction reduction_;
    Encoding encoding_;
    Rank root_;
    bool is_uneven_ = false;
    bool is_barrier_ = false;
    Blocks inputs_;
    Blocks outputs_;
    std::array<Block, 2> piece_{};  // of the only input, and of the only output
    Staging staging_;               // whose memory the blocks are
};

}  // namespace pccl::backend
