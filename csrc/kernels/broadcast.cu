// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/collective_plans.h"
#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/ll.cuh"
#include "csrc/kernels/device/shares.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

/// Sends from all ranks: the root sends the data, the others a word that satisfies the channel's
/// rule (device_team.h).
__global__ void __launch_bounds__(abi::kLLLinesPerBlock, 1)
    broadcast_ll(const __grid_constant__ MoveArguments args) {
    const EpochScope scope(args.team);
    const abi::DeviceTeam& team = args.team;
    const std::size_t at = grid_group().first * kWordBytes;
    const std::size_t bytes = args.blocks.bytes[0];
    if (at < bytes) {
        const Word own = team.rank == args.root ? load_word(args.blocks.inputs[0], at, bytes) : 0;
        send_ll(team, scope, [own](int) { return own; });
        Words words;
        if (receive_ll(team, scope, own, words)) {
            Word data = 0;
#pragma unroll
            for (int rank = 0; rank < abi::kMostDevices; ++rank)
                if (rank == args.root) data = words[rank];
            // The root only reads its tensor.
            if (team.rank != args.root || args.blocks.inputs[0] != args.blocks.outputs[0])
                store_word(args.blocks.outputs[0], at, bytes, data);
        }
    }
    scope.end();
}

/// The ranks without the root, each with a part of the tensor, in the order after the root.
struct Relay {
    int parts;
    int index;  // this rank's part; the root has none

    __device__ Relay(const abi::DeviceTeam& team, int root)
        : parts(team.size - 1), index((team.rank - root - 1 + team.size) % team.size) {}
    [[nodiscard]] __device__ int rank_of(const MoveArguments& args, int part) const {
        return (args.root + 1 + part % parts) % args.team.size;
    }
};

/// Pulls its part from the root and pushes it to all others.
__device__ void pull_and_pass_on(const MoveArguments& args,
                                 const EpochScope::Addresses& addresses) {
    const Relay relay(args.team, args.root);
    const Range part = Shares(args.blocks.bytes[0], relay.parts).of(relay.index);
    Targets to{};
    to.count = relay.parts;
#pragma unroll
    for (int step = 0; step < abi::kMostDevices - 1; ++step)
        to.at[step] = addresses.outputs[relay.rank_of(args, relay.index + step)] + part.begin;
    copy_bytes(grid_group(), addresses.inputs[args.root] + part.begin, to, part.bytes);
}

__global__ void __launch_bounds__(512, 1)
    broadcast_direct(const __grid_constant__ MoveArguments args) {
    __shared__ EpochScope::Addresses addresses;
    const EpochScope scope(args.team);
    if (scope.enter(args.peer_pointers, addresses)) {
        if (args.team.rank != args.root) {
            pull_and_pass_on(args, addresses);
        } else if (args.blocks.inputs[0] != args.blocks.outputs[0]) {
            copy_bytes(grid_group(), args.blocks.inputs[0], args.blocks.outputs[0],
                       args.blocks.bytes[0]);
        }
        scope.exit(EpochScope::Stores::kRelease);
    }
    scope.end();
}

}  // namespace

Status launch_broadcast(const Launch& launch, Stream stream) {
    return launch_move(launch.plan.protocol == Protocol::kLL ? broadcast_ll : broadcast_direct,
                       launch, stream);
}

}  // namespace pccl::kernels
