// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/call.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/torch/errors.h"
#include "csrc/torch/shared_elements.h"

namespace pccl::backend {
namespace {

/// Returns whether every rank receives from all others, and thus detects differing outputs before
/// it returns results.
bool all_receive(CollectiveKind kind) { return !schedule::is_rooted(kind); }

/// Returns the handling of elements that share memory, alike on all ranks. Their results are equal
/// in an all_reduce. In gathers they may be equal, which all ranks can compare.
TensorStaging::Repeats repeats_in(CollectiveKind kind, bool is_on_host) {
    if (kind == CollectiveKind::kAllReduce) return TensorStaging::Repeats::kTrusted;
    const bool is_comparable = kind == CollectiveKind::kAllGather || !all_receive(kind);
    return is_on_host && is_comparable ? TensorStaging::Repeats::kCompared
                                       : TensorStaging::Repeats::kRefused;
}

}  // namespace

Call::Call(CollectiveKind kind, const Sample& sample, Rank root)
    : Call(kind, sample, TensorReduction{}, root) {
    encoding_ = encoding_for_moves(scalar_type_);
}

Call::Call(CollectiveKind kind, const Sample& sample, const TensorReduction& reduction, Rank root)
    : kind_(kind),
      scalar_type_(sample.tensor.scalar_type()),
      device_(sample.tensor.device()),
      is_on_host_(device_.is_cpu() || sample.place == TensorStaging::StagingPlace::kHost),
      reduction_(reduction),
      root_(root),
      staging_(sample.place) {
    staging_.set_repeats(repeats_in(kind, is_on_host_));
    if (schedule::reduces(kind))
        encoding_ = encoding_for_reductions(scalar_type_, reduction.op, is_on_host_);
}

void Call::read(const at::Tensor& tensor) {
    inputs_.push_back(block_to_read(readable(tensor), encoding_));
}

void Call::write(const at::Tensor& tensor) {
    outputs_.push_back(block_to_write(writable(tensor), encoding_));
}

void Call::write_all(const std::vector<at::Tensor>& tensors) {
    if (!share_memory(tensors)) {
        for (const at::Tensor& tensor : tensors) write(tensor);
        return;
    }
    for (const at::Tensor& tensor : tensors) {
        check(tensor);
        const at::Tensor memory = staging_.refused(
            tensor, "outputs share memory; give tensors that have memory of their own");
        outputs_.push_back(block_to_write(memory, encoding_));
    }
}

void Call::add_root_block(const at::Tensor& tensor) {
    read(tensor);
    outputs_.push_back(inputs_.back());
}

bool Call::may_fail_alone() const { return !all_receive(kind_) && staging_.why_refused().is_ok(); }

void Call::update(const at::Tensor& tensor) {
    if (reduction_.factor) {
        read(tensor);
        write(tensor);
        return;
    }
    check(tensor);
    const at::Tensor memory = staging_.updatable(tensor);
    outputs_.push_back(block_to_write(memory, encoding_));
    inputs_.push_back(outputs_.back());
}

void Call::read_parts(const at::Tensor& whole, std::span<const std::size_t> lengths) {
    append_parts(inputs_, block_to_read(readable(whole), encoding_), lengths);
}

void Call::write_parts(const at::Tensor& whole, std::span<const std::size_t> lengths) {
    append_parts(outputs_, block_to_write(writable(whole), encoding_), lengths);
}

Collective Call::collective() const {
    return {.kind = kind_,
            .type = encoding_.type,
            .op = reduction_.op,
            .root = root_,
            .inputs = {inputs_.data(), inputs_.size()},
            .outputs = {outputs_.data(), outputs_.size()},
            .is_barrier = is_barrier_,
            .is_even = may_be_even(kind_) && !is_uneven_,
            .overlap = all_receive(kind_) ? staging_.overlap() : 0,
            .is_refused = !staging_.why_refused().is_ok()};
}

std::size_t Call::pieces() const {
    constexpr std::size_t kBytes = std::size_t{4} << 20;
    if (staging_.is_short()) return 1;
    const bool is_one_block = kind_ == CollectiveKind::kAllReduce ||
                              kind_ == CollectiveKind::kReduce ||
                              kind_ == CollectiveKind::kBroadcast;
    if (!is_one_block || !is_on_host_ || !device_.is_cuda() || reduction_.factor) return 1;
    const Block& block = inputs_.empty() ? outputs_.front() : inputs_.front();
    const std::size_t bytes = block.count * size_of(encoding_.type);
    return bytes <= kBytes ? 1 : (bytes + kBytes - 1) / kBytes;
}

Collective Call::piece(std::size_t index) {
    if (staging_.is_short()) shorten_blocks();
    const std::size_t all = pieces();
    Collective whole = collective();
    if (all == 1) {
        staging_.load();
        return whole;
    }
    const std::size_t elements = (inputs_.empty() ? outputs_ : inputs_).front().count;
    // Shares are whole elements of the tensor.
    const std::size_t share = (elements / encoding_.units + all - 1) / all;
    const std::size_t begin = std::min(index * share * encoding_.units, elements);
    const std::size_t count = std::min(share * encoding_.units, elements - begin);
    staging_.load(begin / encoding_.units, (begin + count) / encoding_.units);
    const auto cut = [&](std::span<const Block> side, Block& part) {
        if (side.empty()) return side;
        part = {side.front().data + begin * size_of(encoding_.type), count};
        return std::span<const Block>(&part, 1);
    };
    whole.inputs = cut(whole.inputs, piece_[0]);
    whole.outputs = cut(whole.outputs, piece_[1]);
    return whole;
}

void Call::shorten_blocks() {
    const auto blocks = static_cast<std::int64_t>(inputs_.size() + outputs_.size());
    const at::Tensor units = at::empty({blocks}, at::kComplexDouble);
    staging_.hold(units);
    auto* at = static_cast<std::byte*>(units.mutable_data_ptr());
    for (Blocks* const side : {&inputs_, &outputs_})
        for (Block& block : *side) block = {std::exchange(at, at + units.element_size()), 1};
}

at::Tensor Call::readable(const at::Tensor& tensor) {
    check(tensor);
    at::Tensor memory = staging_.readable(tensor);
    if (!reduction_.factor || staging_.is_short()) return memory;
    staging_.load();
    memory = premultiplied(memory);
    staging_.hold(memory);
    return memory;
}

at::Tensor Call::writable(const at::Tensor& tensor) {
    check(tensor);
    return staging_.writable(tensor);
}

void Call::append_parts(Blocks& blocks, Block whole, std::span<const std::size_t> lengths) const {
    std::byte* at = whole.data;
    for (const std::size_t length : lengths) {
        const std::size_t count = length * encoding_.units;
        blocks.push_back({at, count});
        if (count > 0) at += count * size_of(encoding_.type);
    }
}

void Call::check(const at::Tensor& tensor) const {
    check_tensor(tensor);
    TORCH_CHECK_VALUE(tensor.scalar_type() == scalar_type_,
                      "PCCL expects tensors of one type, got ", scalar_type_, " and ",
                      tensor.scalar_type());
    TORCH_CHECK_VALUE(tensor.device() == device_, "PCCL expects tensors of one device, got ",
                      device_, " and ", tensor.device());
}

at::Tensor Call::premultiplied(const at::Tensor& tensor) {
    if (tensor.is_cuda()) return scaled_copy(tensor, *reduction_.factor);
    std::optional<at::Tensor> product = staging_.try_to_stage(tensor);
    if (!product) return staging_.fall_short(tensor);
    const Block from = block_to_read(tensor, encoding_);
    const Block to = block_to_write(*product, encoding_);
    const Status status =
        arithmetic::premultiply(encoding_.type, to.data, from.data, from.count, *reduction_.factor);
    throw_unless_ok("premul_sum", status);
    return *std::move(product);
}

}  // namespace pccl::backend
