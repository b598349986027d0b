// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/tensors.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "csrc/device/device_memory.h"
#include "csrc/torch/compat.h"

namespace pccl::backend {

namespace {

std::optional<DataType> data_type_of(at::ScalarType type) {
    switch (type) {
        case at::kByte:
            return DataType::kUint8;
        case at::kChar:
            return DataType::kInt8;
        case at::kUInt16:
            return DataType::kUint16;
        case at::kShort:
            return DataType::kInt16;
        case at::kUInt32:
            return DataType::kUint32;
        case at::kInt:
            return DataType::kInt32;
        case at::kUInt64:
            return DataType::kUint64;
        case at::kLong:
            return DataType::kInt64;
        case at::kHalf:
            return DataType::kFloat16;
        case at::kBFloat16:
            return DataType::kBfloat16;
        case at::kFloat:
            return DataType::kFloat32;
        case at::kDouble:
            return DataType::kFloat64;
        case at::kComplexFloat:
            return DataType::kComplex64;
        case at::kComplexDouble:
            return DataType::kComplex128;
        case at::kBool:
            return DataType::kBool;
        default:
            return std::nullopt;
    }
}

double factor_of(const c10d::ReduceOp& op) {
    const auto* supplement = dynamic_cast<const PremultiplySupplement*>(op.supplement_.get());
    TORCH_CHECK_VALUE(supplement != nullptr, "PREMUL_SUM carries no factor");
    const at::Tensor& factor = supplement->tensor_factor;
    return factor.defined() ? factor.item().toDouble() : supplement->double_factor;
}

}  // namespace

Encoding encoding_for_moves(at::ScalarType type) {
    if (const auto known = data_type_of(type)) return {*known, 1};
    return {DataType::kBytes, c10::elementSize(type)};
}

Encoding encoding_for_reductions(at::ScalarType type, ReduceOp op, bool is_on_host) {
    if (const auto known = data_type_of(type)) return {*known, 1};
    if (!is_on_host && type == at::kFloat8_e4m3fn) return {DataType::kFloat8E4m3, 1};
    if (!is_on_host && type == at::kFloat8_e5m2) return {DataType::kFloat8E5m2, 1};
    const bool is_linear = op == ReduceOp::kSum || op == ReduceOp::kAvg;
    if (type == at::kComplexHalf && is_linear) return {DataType::kFloat16, 2};
    C10_THROW_ERROR(NotImplementedError,
                    c10::str("PCCL moves tensors of type ", type, " but does not reduce them"));
}

TensorReduction reduction_of(const c10d::ReduceOp& op) {
    switch (op.op_) {
        case c10d::ReduceOp::SUM:
            return {ReduceOp::kSum, {}};
        case c10d::ReduceOp::AVG:
            return {ReduceOp::kAvg, {}};
        case c10d::ReduceOp::PRODUCT:
            return {ReduceOp::kProduct, {}};
        case c10d::ReduceOp::MIN:
            return {ReduceOp::kMin, {}};
        case c10d::ReduceOp::MAX:
            return {ReduceOp::kMax, {}};
        case c10d::ReduceOp::BAND:
            return {ReduceOp::kBand, {}};
        case c10d::ReduceOp::BOR:
            return {ReduceOp::kBor, {}};
        case c10d::ReduceOp::BXOR:
            return {ReduceOp::kBxor, {}};
        case c10d::ReduceOp::PREMUL_SUM:
            return {ReduceOp::kSum, factor_of(op)};
        default:
            C10_THROW_ERROR(ValueError, "PCCL does not support this ReduceOp");
    }
}

void check_tensor(const at::Tensor& tensor) {
    TORCH_CHECK_VALUE(tensor.defined(), "PCCL got an undefined tensor");
    TORCH_CHECK_NOT_IMPLEMENTED(tensor.is_cpu() || tensor.is_cuda(),
                                "PCCL has no way to move tensors of device ", tensor.device());
    TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == at::kStrided,
                                "PCCL expects a dense tensor, got ", tensor.layout());
}

bool needs_staging(const at::Tensor& tensor) {
    return !tensor.is_contiguous() || tensor.is_conj() || tensor.is_neg();
}

at::Tensor stage_for(const at::Tensor& tensor) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return at::empty_like(tensor, at::MemoryFormat::Contiguous);
}

at::Tensor pinned_stage_for(const at::Tensor& tensor) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto options = at::TensorOptions(tensor.scalar_type()).pinned_memory(true);
    return at::empty(tensor.sizes(), options);
}

void await_current_stream(const at::Device& device) {
    const c10::impl::VirtualGuardImpl streams(device.type());
    streams.synchronizeStream(streams.getStream(device));
}

at::Tensor staged_copy(const at::Tensor& tensor) {
    at::Tensor stage = stage_for(tensor);
    copy_elements(stage, tensor);
    return stage;
}

at::Tensor scaled_copy(const at::Tensor& tensor, double factor) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return staged_copy(tensor).mul_(factor);
}

void copy_elements(const at::Tensor& to, const at::Tensor& from) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    to.copy_(from);
}

void copy_to_gpu(const at::Tensor& to, const at::Tensor& from) {
    if (!needs_staging(to) && to.nbytes() > 0) {
        const c10::OptionalDeviceGuard on_device(to.device());
        const c10::impl::VirtualGuardImpl streams(to.device().type());
        void* const stream = native_handle(streams, streams.getStream(to.device()));
        const Status copied = device::copy_from_host(to.device().index(), to.mutable_data_ptr(),
                                                     from.const_data_ptr(), to.nbytes(), stream);
        if (copied.is_ok()) return;
    }
    copy_elements(to, from);
}

void copy_range(const at::Tensor& to, const at::Tensor& from, std::size_t begin, std::size_t end) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto part = [&](const at::Tensor& tensor) {
        return tensor.view({-1}).narrow(0, static_cast<std::int64_t>(begin),
                                        static_cast<std::int64_t>(end - begin));
    };
    part(to).copy_(part(from));
}

Block block_to_read(const at::Tensor& tensor, Encoding encoding) {
    // A Block has one pointer type for both directions; the communicator only reads inputs.
    auto* data = const_cast<std::byte*>(static_cast<const std::byte*>(tensor.const_data_ptr()));
    return {data, static_cast<std::size_t>(tensor.numel()) * encoding.units};
}

Block block_to_write(const at::Tensor& tensor, Encoding encoding) {
    auto* data = static_cast<std::byte*>(tensor.mutable_data_ptr());
    return {data, static_cast<std::size_t>(tensor.numel()) * encoding.units};
}

}  // namespace pccl::backend
