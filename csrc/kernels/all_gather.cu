// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/collective_plans.h"
#include "csrc/kernels/device/direct.cuh"
#include "csrc/kernels/device/ll.cuh"
#include "csrc/kernels/device/staggered.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

__global__ void __launch_bounds__(abi::kLLLinesPerBlock, 1)
    all_gather_ll(const __grid_constant__ MoveArguments args) {
    const EpochScope scope(args.team);
    const abi::DeviceTeam& team = args.team;
    const std::size_t at = grid_group().first * kWordBytes;
    const std::size_t bytes = args.blocks.bytes[0];
    if (at < bytes) {
        const Word own = load_word(args.blocks.inputs[0], at, bytes);
        send_ll(team, scope, [own](int) { return own; });
        Words words;
        const bool came = receive_ll(team, scope, own, words);
#pragma unroll
        for (int rank = 0; rank < abi::kMostDevices; ++rank)
            if (came && rank < team.size)
                store_word(args.blocks.outputs[rank], at, bytes, words[rank]);
    }
    scope.end();
}

__global__ void __launch_bounds__(512, 1)
    all_gather_direct(const __grid_constant__ MoveArguments args) {
    __shared__ EpochScope::Addresses addresses;
    const EpochScope scope(args.team);
    const abi::DeviceTeam& team = args.team;
    if (scope.enter(args.peer_pointers, addresses)) {
        push_to_all(grid_group(), team, addresses, args.blocks.inputs[0], args.blocks.bytes[0]);
        scope.exit(EpochScope::Stores::kRelease);
    }
    scope.end();
}

/// Does the same to one peer at a time.
__global__ void __launch_bounds__(512, 1)
    all_gather_staggered(const __grid_constant__ MoveArguments args) {
    __shared__ EpochScope::Addresses addresses;
    const EpochScope scope(args.team);
    const abi::DeviceTeam& team = args.team;
    if (scope.enter(args.peer_pointers, addresses)) {
        const auto push = [&](int peer) {
            Targets to{};
            to.at[0] = addresses.outputs[peer];
            to.at[1] = addresses.outputs[team.rank];
            const bool is_first = peer == (team.rank + 1) % team.size;
            const bool keeps = is_first && to.at[1] != args.blocks.inputs[0];
            to.count = keeps ? 2 : 1;
            copy_bytes(grid_group(), args.blocks.inputs[0], to, args.blocks.bytes[0]);
        };
        if (StaggeredPush(team, scope).run(push)) scope.exit(EpochScope::Stores::kRelease);
    }
    scope.end();
}

auto kernel_of(Protocol protocol) -> void (*)(MoveArguments) {
    switch (protocol) {
        case Protocol::kLL:
            return all_gather_ll;
        case Protocol::kStaggered:
            return all_gather_staggered;
        case Protocol::kDirect:
        case Protocol::kCopyEngine:
        case Protocol::kLL128:
            break;
    }
    return all_gather_direct;
}

}  // namespace

Status launch_all_gather(const Launch& launch, Stream stream) {
    return launch_move(kernel_of(launch.plan.protocol), launch, stream);
}

}  // namespace pccl::kernels
