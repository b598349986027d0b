// SPDX-License-Identifier: Apache-2.0

// Several collectives of one kind in one launch, each in blocks of its own. These blocks send their
// peers the tensor addresses of their own collective.
#include "csrc/kernels/device/direct.cuh"
#include "csrc/kernels/device/shares.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

/// Returns the part that this block works on.
__device__ const LargePart& own_part(const LargeBatch& batch) {
    const int block = static_cast<int>(blockIdx.x);
    int index = 0;
    while (index + 1 < batch.count && batch.parts[index + 1].first_block <= block) ++index;
    return batch.parts[index];
}

__device__ ThreadGroup group_of(const LargePart& part) {
    return device::group_of(static_cast<int>(blockIdx.x) - part.first_block, part.blocks);
}

__global__ void __launch_bounds__(512, 1)
    large_batch_move(const __grid_constant__ LargeBatch batch) {
    __shared__ EpochScope::Addresses addresses;
    const EpochScope scope(batch.team);
    const LargePart& part = own_part(batch);
    if (scope.enter(part.peer_pointers, addresses)) {
        push_to_all(group_of(part), batch.team, addresses, part.input, part.bytes);
        scope.exit(EpochScope::Stores::kRelease);
    }
    scope.end();
}

template <typename Reduction>
struct ReducedLargeBatch {
    LargeBatch batch;
    Reduction reduction;
};

/// Runs an all_reduce or a reduce_scatter. An all_reduce pulls this rank's share of all inputs and
/// pushes the sum to all outputs. A reduce_scatter, whose inputs are one block each, has one
/// output.
template <int kMost, typename Reduction>
__global__ void __launch_bounds__(512, 1)
    large_batch_reduce(const __grid_constant__ ReducedLargeBatch<Reduction> args) {
    __shared__ EpochScope::Addresses addresses;
    const abi::DeviceTeam& team = args.batch.team;
    const EpochScope scope(team);
    const LargePart& part = own_part(args.batch);
    if (scope.enter(part.peer_pointers, addresses)) {
        const bool is_scattered = part.output != nullptr;
        const Range share =
            is_scattered ? Range{0, part.bytes} : Shares(part.bytes, team.size).of(team.rank);
        Targets to = all_of<kMost>(team, addresses.outputs, share.begin);
        if (is_scattered) to.be_only(part.output);
        combine_bytes<kMost>(group_of(part), all_of<kMost>(team, addresses.inputs, share.begin), to,
                             share.bytes, args.reduction);
        scope.exit(EpochScope::Stores::kRelease);
    }
    scope.end();
}

}  // namespace

Status launch_large_batch(const LargeBatch& batch, Stream stream) {
    if (!batch.reduces) return launch_kernel(large_batch_move, batch, batch.plan, stream);
    return with_reduction(batch, [&]<typename Reduction>(const Reduction& reduction) {
        if constexpr (is_hot<Reduction>) {
            auto* const kernel = kernel_for_ranks<Reduction>(
                batch.team.size, [](auto kMost) { return large_batch_reduce<kMost, Reduction>; });
            return launch_kernel(kernel, {batch, reduction}, batch.plan, stream);
        }
        return Status::internal("a reduction that no large batch does");
    });
}

}  // namespace pccl::kernels
