#include "csrc/kernels/device/direct.cuh"
#include "csrc/kernels/device/words.cuh"
#include "csrc/kernels/dispatch.cuh"
#include "csrc/kernels/reduce_scatter.h"

namespace pccl::kernels {
namespace {

using namespace device;

template <typename Reduction>
__global__ void __launch_bounds__(abi::kLinesPerBlock, 1)
    reduce_scatter_words(const __grid_constant__ ReduceArguments<Reduction> args) {
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
        if (receive_words(team, visit, word_for(team.rank), words))
            store_word(args.blocks.outputs[0], at, bytes,
                       combine_words(team, words, args.reduction));
    }
    visit.end();
}

/// Rank r pulls block r of all inputs.
template <int kMost, typename Reduction>
__global__ void __launch_bounds__(512, 1)
    reduce_scatter_direct(const __grid_constant__ ReduceArguments<Reduction> args) {
    __shared__ Visit::Addresses addresses;
    const Visit visit(args.team);
    const abi::DeviceTeam& team = args.team;
    if (visit.greet(args.postings, addresses)) {
        combine_bytes<kMost>(grid_crew(), all_of<kMost>(team, addresses.inputs, 0),
                             one_output(args.blocks.outputs[0]), args.blocks.bytes[0],
                             args.reduction);
        visit.depart(Visit::Stores::kNone);
    }
    visit.end();
}

struct Kernels {
    template <typename Reduction>
    static auto choose(const Launch& launch) -> void (*)(ReduceArguments<Reduction>) {
        if (launch.plan.protocol == Protocol::kWords) return reduce_scatter_words<Reduction>;
        return kernel_for_ranks<Reduction>(
            launch.team.size, [](auto kMost) { return reduce_scatter_direct<kMost, Reduction>; });
    }
};

}  // namespace

Status launch_reduce_scatter(const Launch& launch, Stream stream) {
    return launch_reduction<Kernels>(launch, stream);
}

}  // namespace pccl::kernels
