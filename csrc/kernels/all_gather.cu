#include "csrc/kernels/all_gather.h"
#include "csrc/kernels/device/direct.cuh"
#include "csrc/kernels/device/turns.cuh"
#include "csrc/kernels/device/words.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

__global__ void __launch_bounds__(abi::kLinesPerBlock, 1)
    all_gather_words(const __grid_constant__ MoveArguments args) {
    const Visit visit(args.team);
    const abi::DeviceTeam& team = args.team;
    const std::size_t at = grid_crew().first * kWordBytes;
    const std::size_t bytes = args.blocks.bytes[0];
    if (at < bytes) {
        const Word own = load_word(args.blocks.inputs[0], at, bytes);
        send_words(team, visit, [own](int) { return own; });
        Words words;
        const bool came = receive_words(team, visit, own, words);
#pragma unroll
        for (int rank = 0; rank < abi::kMostDevices; ++rank)
            if (came && rank < team.size)
                store_word(args.blocks.outputs[rank], at, bytes, words[rank]);
    }
    visit.end();
}

__global__ void __launch_bounds__(512, 1)
    all_gather_direct(const __grid_constant__ MoveArguments args) {
    __shared__ Visit::Addresses addresses;
    const Visit visit(args.team);
    const abi::DeviceTeam& team = args.team;
    if (visit.greet(args.postings, addresses)) {
        push_to_all(grid_crew(), team, addresses, args.blocks.inputs[0], args.blocks.bytes[0]);
        visit.depart(Visit::Stores::kRelease);
    }
    visit.end();
}

/// The same to one peer at a time.
__global__ void __launch_bounds__(512, 1)
    all_gather_turns(const __grid_constant__ MoveArguments args) {
    __shared__ Visit::Addresses addresses;
    const Visit visit(args.team);
    const abi::DeviceTeam& team = args.team;
    if (visit.greet(args.postings, addresses)) {
        const auto push = [&](int peer) {
            Targets to{};
            to.at[0] = addresses.outputs[peer];
            to.at[1] = addresses.outputs[team.rank];
            const bool is_first = peer == (team.rank + 1) % team.size;
            const bool keeps = is_first && to.at[1] != args.blocks.inputs[0];
            to.count = keeps ? 2 : 1;
            copy_bytes(grid_crew(), args.blocks.inputs[0], to, args.blocks.bytes[0]);
        };
        if (Turns(team, visit).take(push)) visit.depart(Visit::Stores::kRelease);
    }
    visit.end();
}

auto kernel_of(Protocol protocol) -> void (*)(MoveArguments) {
    switch (protocol) {
        case Protocol::kWords:
            return all_gather_words;
        case Protocol::kTurns:
            return all_gather_turns;
        case Protocol::kDirect:
        case Protocol::kEngines:
        case Protocol::kLines:
            break;
    }
    return all_gather_direct;
}

}  // namespace

Status launch_all_gather(const Launch& launch, Stream stream) {
    return launch_move(kernel_of(launch.plan.protocol), launch, stream);
}

}  // namespace pccl::kernels
