// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/collective_plans.h"
#include "csrc/kernels/device/direct.cuh"
#include "csrc/kernels/device/ll.cuh"
#include "csrc/kernels/device/shares.cuh"
#include "csrc/kernels/device/staggered.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

__device__ __forceinline__ bool gets_result(int root, int rank) {
    return root == kNoRoot || root == rank;
}

template <typename Reduction>
__global__ void __launch_bounds__(abi::kLLLinesPerBlock, 1)
    all_reduce_ll(const __grid_constant__ ReduceArguments<Reduction> args) {
    const EpochScope scope(args.team);
    const std::size_t at = grid_group().first * kWordBytes;
    const std::size_t bytes = args.blocks.bytes[0];
    if (at < bytes) {
        const Word own = load_word(args.blocks.inputs[0], at, bytes);
        send_ll(args.team, scope, [own](int) { return own; });
        Words words;
        const bool came = receive_ll(args.team, scope, own, words);
        if (came && gets_result(args.root, args.team.rank))
            store_word(args.blocks.outputs[0], at, bytes,
                       combine_words(args.team, words, args.reduction));
    }
    scope.end();
}

/// Returns the part that this rank sums up; all have equal parts. Towards a root, a part of the
/// root's own would bring more bytes over its link than the result has, so the others do the sum;
/// where there is only one other, the root does it for large tensors.
__device__ Range own_part(const abi::DeviceTeam& team, std::size_t bytes, int root) {
    const bool is_pair = team.size <= 2;
    if (root == kNoRoot || (is_pair && bytes < kLeastForRootAlone))
        return Shares(bytes, team.size).of(team.rank);
    const bool is_root = team.rank == root;
    if (is_pair) return {0, is_root ? bytes : 0};
    if (is_root) return {0, 0};
    return Shares(bytes, team.size - 1).of(team.rank < root ? team.rank : team.rank - 1);
}

/// Pulls this rank's part of all inputs and pushes the sum to all outputs, or to the root's.
template <int kMost, typename Reduction>
__global__ void __launch_bounds__(512, 1)
    all_reduce_direct(const __grid_constant__ ReduceArguments<Reduction> args) {
    __shared__ EpochScope::Addresses addresses;
    const EpochScope scope(args.team);
    const abi::DeviceTeam& team = args.team;
    if (scope.enter(args.peer_pointers, addresses)) {
        const Range part = own_part(team, args.blocks.bytes[0], args.root);
        Targets to = all_of<kMost>(team, addresses.outputs, part.begin);
        if (args.root != kNoRoot) to.be_only(addresses.outputs[args.root] + part.begin);
        combine_bytes<kMost>(grid_group(), all_of<kMost>(team, addresses.inputs, part.begin), to,
                             part.bytes, args.reduction);
        scope.exit(EpochScope::Stores::kRelease);
    }
    scope.end();
}

/// Pulls part r of all inputs on rank r, and pushes the sum to one peer after the other. Each block
/// has a piece of the part to itself, so that it pushes the data that it has reduced itself.
template <int kMost, typename Reduction>
__global__ void __launch_bounds__(512, 1)
    all_reduce_staggered(const __grid_constant__ ReduceArguments<Reduction> args) {
    __shared__ EpochScope::Addresses addresses;
    const EpochScope scope(args.team);
    const abi::DeviceTeam& team = args.team;
    if (scope.enter(args.peer_pointers, addresses)) {
        const Range part = Shares(args.blocks.bytes[0], team.size).of(team.rank);
        const Range piece =
            Shares(part.bytes, static_cast<int>(gridDim.x)).of(static_cast<int>(blockIdx.x));
        const std::size_t begin = part.begin + piece.begin;
        combine_bytes<kMost>(block_group(), all_of<kMost>(team, addresses.inputs, begin),
                             one_output(args.blocks.outputs[0] + begin), piece.bytes,
                             args.reduction);
        const auto push = [&](int peer) {
            copy_bytes(block_group(), args.blocks.outputs[0] + begin,
                       addresses.outputs[peer] + begin, piece.bytes);
        };
        if (StaggeredPush(team, scope).run(push)) scope.exit(EpochScope::Stores::kRelease);
    }
    scope.end();
}

template <int kMost, typename Reduction>
auto large_kernel_of(const Launch& launch) -> void (*)(ReduceArguments<Reduction>) {
    const bool is_staggered =
        launch.plan.protocol == Protocol::kStaggered && launch.root == kNoRoot;
    return is_staggered ? all_reduce_staggered<kMost, Reduction>
                        : all_reduce_direct<kMost, Reduction>;
}

struct AllReduceKernels {
    template <typename Reduction>
    static auto choose(const Launch& launch) -> void (*)(ReduceArguments<Reduction>) {
        if (launch.plan.protocol == Protocol::kLL) return all_reduce_ll<Reduction>;
        return kernel_for_ranks<Reduction>(launch.team.size, [&](auto kMost) {
            return large_kernel_of<kMost, Reduction>(launch);
        });
    }
};

}  // namespace

Status launch_all_reduce(const Launch& launch, Stream stream) {
    return launch_reduction<AllReduceKernels>(launch, stream);
}

}  // namespace pccl::kernels
