#include "csrc/kernels/broadcast.h"
#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/words.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

struct Arguments {
    abi::DeviceTeam team;
    abi::Postings postings;
    const std::byte* input;  // of the root
    std::byte* output;
    std::size_t bytes;
    std::int32_t root;
};

/// All send: the root the data, the others a word that keeps the channel's rule (device_team.h).
__global__ void __launch_bounds__(abi::kLinesPerBlock)
    broadcast_words(const __grid_constant__ Arguments args) {
    const Visit visit(args.team);
    const abi::DeviceTeam& team = args.team;
    const std::size_t at = grid_crew().first * kWordBytes;
    if (at < args.bytes) {
        const Word own = team.rank == args.root ? load_word(args.input, at, args.bytes) : 0;
        send_words(team, visit, [own](int) { return own; });
        Words words;
        if (receive_words(team, visit, own, words)) {
            Word data = 0;
#pragma unroll
            for (int rank = 0; rank < abi::kMostDevices; ++rank)
                if (rank == args.root) data = words[rank];
            store_word(args.output, at, args.bytes, data);
        }
    }
    visit.end();
}

/// The i-th rank after the root pulls part i of n - 1 and pushes it to all others.
__device__ void pass_on(const Arguments& args, const Visit::Addresses& addresses) {
    const abi::DeviceTeam& team = args.team;
    const int parts = team.size - 1;
    const int index = (team.rank - args.root - 1 + team.size) % team.size;
    const std::size_t share = (args.bytes + parts - 1) / parts;
    const std::size_t part = (share + sizeof(uint4) - 1) / sizeof(uint4) * sizeof(uint4);
    const std::size_t begin = min(part * index, args.bytes);
    const std::size_t end = min(begin + part, args.bytes);
    Targets to{};
    to.count = parts;
#pragma unroll
    for (int step = 0; step < abi::kMostDevices - 1; ++step) {
        const int peer = (args.root + 1 + (index + step) % parts) % team.size;
        to.at[step] = addresses.outputs[peer] + begin;
    }
    copy_bytes(grid_crew(), addresses.inputs[args.root] + begin, to, end - begin);
}

__global__ void __launch_bounds__(512, 1) broadcast_direct(const __grid_constant__ Arguments args) {
    __shared__ Visit::Addresses addresses;
    const Visit visit(args.team);
    if (visit.greet(args.postings, addresses)) {
        if (args.team.rank != args.root) {
            pass_on(args, addresses);
        } else if (args.input != args.output) {
            copy_bytes(grid_crew(), args.input, args.output, args.bytes);
        }
        visit.depart(Visit::Stores::kRelease);
    }
    visit.end();
}

}  // namespace

Status launch_broadcast(const Launch& launch, Stream stream) {
    return launch_kernel(
        launch.plan.protocol == Protocol::kWords ? broadcast_words : broadcast_direct,
        {.team = launch.team,
         .postings = launch.postings,
         .input = launch.input,
         .output = launch.output,
         .bytes = launch.count * size_of(launch.type),
         .root = launch.root},
        launch.plan, stream);
}

}  // namespace pccl::kernels
