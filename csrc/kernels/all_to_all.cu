// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/collective_plans.h"
#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/lengths.cuh"
#include "csrc/kernels/device/ll.cuh"
#include "csrc/kernels/device/staggered.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

__global__ void __launch_bounds__(abi::kLLLinesPerBlock, 1)
    all_to_all_ll(const __grid_constant__ MoveArguments args) {
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
        const bool came = receive_ll(team, scope, word_for(team.rank), words);
#pragma unroll
        for (int rank = 0; rank < abi::kMostDevices; ++rank)
            if (came && rank < team.size)
                store_word(args.blocks.outputs[rank], at, bytes, words[rank]);
    }
    scope.end();
}

/// Returns whether all ranks have equal lengths. False: the block has withdrawn. All threads call
/// it.
__device__ bool agree_on_lengths(const MoveArguments& args, const EpochScope& scope,
                                 const EpochScope::Addresses& addresses) {
    if (have_equal_lengths(args.team, args.blocks.bytes, addresses)) return true;
    scope.withdraw();
    return false;
}

__device__ __forceinline__ void push_block(const ThreadGroup& group, const BlockPointers& blocks,
                                           const EpochScope::Addresses& addresses, int peer) {
    copy_bytes(group, blocks.inputs[peer], addresses.outputs[peer], blocks.bytes[peer]);
}

/// Division of labour: the last quarter of the blocks copies the data that the rank keeps, while
/// the others push.
class Parting {
   public:
    /// Divides the blocks; all blocks do both where the division is not `wanted`, or where blocks
    /// are few.
    explicit __device__ Parting(bool wanted = true)
        : keepers_(wanted ? static_cast<int>(gridDim.x) / 4 : 0),
          pushers_(static_cast<int>(gridDim.x) - keepers_),
          block_(static_cast<int>(blockIdx.x)) {}
    [[nodiscard]] __device__ bool pushes() const { return block_ < pushers_; }
    [[nodiscard]] __device__ bool keeps() const { return keepers_ == 0 || !pushes(); }
    /// Returns the blocks with the same task as this one.
    [[nodiscard]] __device__ ThreadGroup group() const {
        return pushes() ? group_of(block_, pushers_) : group_of(block_ - pushers_, keepers_);
    }

   private:
    const int keepers_;
    const int pushers_;
    const int block_;
};

/// Pushes to one peer after the other; each rank begins with another peer.
__global__ void __launch_bounds__(512, 1)
    all_to_all_direct(const __grid_constant__ MoveArguments args) {
    constexpr std::size_t kLeastKept = 16 << 20;  // long enough to run beside the pushes
    __shared__ EpochScope::Addresses addresses;
    const EpochScope scope(args.team);
    const abi::DeviceTeam& team = args.team;
    if (scope.enter(args.peer_pointers, addresses) && agree_on_lengths(args, scope, addresses)) {
        const Parting parting(args.blocks.bytes[team.rank] >= kLeastKept);
        const ThreadGroup group = parting.group();
        for (int step = 1; step < team.size && parting.pushes(); ++step)
            push_block(group, args.blocks, addresses, (team.rank + step) % team.size);
        if (parting.keeps()) push_block(group, args.blocks, addresses, team.rank);
        scope.exit(EpochScope::Stores::kRelease);
    }
    scope.end();
}

/// Does the same, staggered.
__global__ void __launch_bounds__(512, 1)
    all_to_all_staggered(const __grid_constant__ MoveArguments args) {
    __shared__ EpochScope::Addresses addresses;
    const EpochScope scope(args.team);
    const abi::DeviceTeam& team = args.team;
    if (scope.enter(args.peer_pointers, addresses) && agree_on_lengths(args, scope, addresses)) {
        const Parting parting;
        const ThreadGroup group = parting.group();
        const auto push = [&](int peer) { push_block(group, args.blocks, addresses, peer); };
        const bool is_done = !parting.pushes() || StaggeredPush(team, scope).run(push);
        if (is_done && parting.keeps()) push(team.rank);
        if (is_done) scope.exit(EpochScope::Stores::kRelease);
    }
    scope.end();
}

auto kernel_of(Protocol protocol) -> void (*)(MoveArguments) {
    switch (protocol) {
        case Protocol::kLL:
            return all_to_all_ll;
        case Protocol::kStaggered:
            return all_to_all_staggered;
        case Protocol::kDirect:
        case Protocol::kCopyEngine:
        case Protocol::kLL128:
            break;
    }
    return all_to_all_direct;
}

}  // namespace

Status launch_all_to_all(const Launch& launch, Stream stream) {
    return launch_move(kernel_of(launch.plan.protocol), launch, stream);
}

}  // namespace pccl::kernels
