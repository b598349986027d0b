// SPDX-License-Identifier: Apache-2.0

// A collective over tensors, prepared for the communicator.
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
    /// Properties that all tensors of a call share: they are like `tensor`, and take part at
    /// `place`.
    struct Sample {
        const at::Tensor& tensor;
        TensorStaging::StagingPlace place = TensorStaging::StagingPlace::kDevice;
    };
    Call(CollectiveKind kind, const Sample& sample, Rank root = 0);
    Call(CollectiveKind kind, const Sample& sample, const TensorReduction& reduction,
         Rank root = 0);

    /// Adds one input block, all of `tensor`.
    void read(const at::Tensor& tensor);
    /// Adds one output block.
    void write(const at::Tensor& tensor);
    /// Adds one output block per tensor.
    void write_all(const std::vector<at::Tensor>& tensors);
    /// Adds the input block of a broadcast's root, and its output, which is not written.
    void add_root_block(const at::Tensor& tensor);
    /// Adds one input and one output block, in the same memory where possible.
    void update(const at::Tensor& tensor);
    /// Adds consecutive parts of `whole`, one block each; `lengths` are in elements.
    void read_parts(const at::Tensor& whole, std::span<const std::size_t> lengths);
    void write_parts(const at::Tensor& whole, std::span<const std::size_t> lengths);

    void mark_barrier() { is_barrier_ = true; }
    /// Marks blocks that may differ in length on some rank. For an all_to_all it is the same on all
    /// ranks.
    void mark_uneven() { is_uneven_ = true; }

    /// Returns the collective. Valid until this Call is moved or changed.
    [[nodiscard]] Collective collective() const;
    /// Returns the number of pieces in which to run the collective, the same on all ranks. There
    /// are several where elements of a GPU go through the host, so that the next piece is copied
    /// while one travels.
    [[nodiscard]] std::size_t pieces() const;
    /// Returns one piece after its input is in place. Valid until the next piece, or until this
    /// Call is moved or changed.
    [[nodiscard]] Collective piece(std::size_t index);
    [[nodiscard]] TensorStaging& staging() { return staging_; }
    /// Returns whether staging().finish() may fail here although other ranks consider the operation
    /// done.
    [[nodiscard]] bool may_fail_alone() const;
    /// Returns the device of all its tensors.
    [[nodiscard]] at::Device device() const { return device_; }
    /// Returns whether its blocks are host memory.
    [[nodiscard]] bool is_on_host() const { return is_on_host_; }

   private:
    using Blocks = c10::SmallVector<Block, 4>;

    [[nodiscard]] at::Tensor readable(const at::Tensor& tensor);
    [[nodiscard]] at::Tensor writable(const at::Tensor& tensor);
    void append_parts(Blocks& blocks, Block whole, std::span<const std::size_t> lengths) const;
    void check(const at::Tensor& tensor) const;
    [[nodiscard]] at::Tensor premultiplied(const at::Tensor& tensor);
    /// Replaces all blocks by blocks of one element, where there is no memory for more: the other
    /// ranks get the refusal with the first of them.
    void shorten_blocks();

    CollectiveKind kind_;
    at::ScalarType scalar_type_;
    at::Device device_;
    bool is_on_host_;
    TensorReduction reduction_;
    Encoding encoding_;
    Rank root_;
    bool is_uneven_ = false;
    bool is_barrier_ = false;
    Blocks inputs_;
    Blocks outputs_;
    std::array<Block, 2> piece_{};  // of the only input and the only output
    TensorStaging staging_;         // owns the memory of the blocks
};

}  // namespace pccl::backend
