// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/collective_plans.h"
#include "csrc/kernels/device/direct.cuh"
#include "csrc/kernels/device/ll.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

template <typename Reduction>
__global__ void __launch_bounds__(abi::kLLLinesPerBlock, 1)
    reduce_scatter_ll(const __grid_constant__ ReduceArguments<Reduction> args) {
    const EpochScope scope(args.team);
    const abi::DeviceTeam& team = args.team;
    const std::size_t at = grid_group().first * kWordBytes;
    const std::size_t bytes = args.blocks.bytes[0];
    if (at < bytes) {
        const auto word_for = [&](int rank) {
            return load_word(args.blocks.inputs[rank], at, bytes);
        };
        send_ll(team, scope, word_for);
        Words words;
        if (receive_ll(team, scope, word_for(team.rank), words))
            store_word(args.blocks.outputs[0], at, bytes,
                       combine_words(team, words, args.reduction));
    }
    scope.end();
}

/// Pulls block r of all inputs on rank r.
template <int kMost, typename Reduction>
__global__ void __launch_bounds__(512, 1)
    reduce_scatter_direct(const __grid_constant__ ReduceArguments<Reduction> args) {
    __shared__ EpochScope::Addresses addresses;
    const EpochScope scope(args.team);
    const abi::DeviceTeam& team = args.team;
    if (scope.enter(args.peer_pointers, addresses)) {
        combine_bytes<kMost>(grid_group(), all_of<kMost>(team, addresses.inputs, 0),
                             one_output(args.blocks.outputs[0]), args.blocks.bytes[0],
                             args.reduction);
        scope.exit(EpochScope::Stores::kNone);
    }
    scope.end();
}

struct ReduceScatterKernels {
    template <typename Reduction>
    static auto choose(const Launch& launch) -> void (*)(ReduceArguments<Reduction>) {
        if (launch.plan.protocol == Protocol::kLL) return reduce_scatter_ll<Reduction>;
        return kernel_for_ranks<Reduction>(
            launch.team.size, [](auto kMost) { return reduce_scatter_direct<kMost, Reduction>; });
    }
};

}  // namespace

Status launch_reduce_scatter(const Launch& launch, Stream stream) {
    return launch_reduction<ReduceScatterKernels>(launch, stream);
}

}  // namespace pccl::kernels
