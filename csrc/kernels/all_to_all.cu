#include "csrc/kernels/all_to_all.h"
#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/turns.cuh"
#include "csrc/kernels/device/words.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

__global__ void __launch_bounds__(abi::kLinesPerBlock)
    all_to_all_words(const __grid_constant__ MoveArguments args) {
    const Visit visit(args.team);
    const abi::DeviceTeam& team = args.team;
    const std::size_t at = grid_crew().first * kWordBytes;
    const std::size_t bytes = args.blocks.bytes[0];
    if (at < bytes) {
        const auto word_for = [&](int rank) {
            return load_word(args.blocks.inputs[rank], at, bytes);
        };
        send_words(team, visit, word_for);
        Words words;
        const bool came = receive_words(team, visit, word_for(team.rank), words);
#pragma unroll
        for (int rank = 0; rank < abi::kMostDevices; ++rank)
            if (came && rank < team.size)
                store_word(args.blocks.outputs[rank], at, bytes, words[rank]);
    }
    visit.end();
}

__device__ __forceinline__ void push_block(const Crew& crew, const Blocks& blocks,
                                           const Visit::Addresses& addresses, int peer) {
    copy_bytes(crew, blocks.inputs[peer], addresses.outputs[peer], blocks.bytes[peer]);
}

/// Pushes to one peer after the other, each rank beginning with another.
__global__ void __launch_bounds__(512, 1)
    all_to_all_direct(const __grid_constant__ MoveArguments args) {
    __shared__ Visit::Addresses addresses;
    const Visit visit(args.team);
    const abi::DeviceTeam& team = args.team;
    if (visit.greet(args.postings, addresses)) {
        for (int step = 0; step < team.size; ++step) {
            const int peer = (team.rank + step) % team.size;
            push_block(grid_crew(), args.blocks, addresses, peer);
        }
        visit.depart(Visit::Stores::kRelease);
    }
    visit.end();
}

/// The first blocks push to one peer after the other; the rest copy what the rank keeps meanwhile.
__global__ void __launch_bounds__(512, 1)
    all_to_all_turns(const __grid_constant__ MoveArguments args) {
    __shared__ Visit::Addresses addresses;
    const Visit visit(args.team);
    const abi::DeviceTeam& team = args.team;
    const int keepers = static_cast<int>(gridDim.x) / 4;
    const int pushers = static_cast<int>(gridDim.x) - keepers;
    const int block = static_cast<int>(blockIdx.x);
    if (visit.greet(args.postings, addresses)) {
        if (block >= pushers) {
            push_block(crew_of(block - pushers, keepers), args.blocks, addresses, team.rank);
        } else {
            const Crew crew = crew_of(block, pushers);
            const Turns turns(team, visit);
            for (int turn = 1; turn < team.size && turns.begin(turn); ++turn) {
                push_block(crew, args.blocks, addresses, (team.rank + turn) % team.size);
                turns.end(turn);
            }
            if (keepers == 0) push_block(crew, args.blocks, addresses, team.rank);
        }
        visit.depart(Visit::Stores::kRelease);
    }
    visit.end();
}

auto kernel_of(Protocol protocol) -> void (*)(MoveArguments) {
    switch (protocol) {
        case Protocol::kWords:
            return all_to_all_words;
        case Protocol::kTurns:
            return all_to_all_turns;
        case Protocol::kDirect:
        case Protocol::kEngines:
            break;
    }
    return all_to_all_direct;
}

}  // namespace

Status launch_all_to_all(const Launch& launch, Stream stream) {
    return launch_move(kernel_of(launch.plan.protocol), launch, stream);
}

}  // namespace pccl::kernels
