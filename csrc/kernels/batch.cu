// SPDX-License-Identifier: Apache-2.0

// Several small collectives of one kind in one launch, by LL.
#include "csrc/kernels/device/ll.cuh"
#include "csrc/kernels/device/packets.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

struct WordPlace {
    const Part& part;
    std::size_t at;  // of this thread's word, in every block of the part

    __device__ WordPlace(const BatchLaunch& batch, std::size_t word)
        : part(batch.parts[index_of(batch, word)]), at((word - part.first_word) * kWordBytes) {}

   private:
    static __device__ int index_of(const BatchLaunch& batch, std::size_t word) {
        int index = 0;
        while (index + 1 < batch.count && batch.parts[index + 1].first_word <= word) ++index;
        return index;
    }
};

/// Sends this thread's word of every block to its rank, and receives one from each.
__device__ bool exchange_words(const BatchLaunch& batch, const EpochScope& scope,
                               const WordPlace& place, Words& words) {
    const auto word_for = [&](int rank) {
        return load_word(place.part.inputs[rank], place.at, place.part.bytes);
    };
    send_ll(batch.team, scope, word_for);
    return receive_ll(batch.team, scope, word_for(batch.team.rank), words);
}

__global__ void __launch_bounds__(abi::kLLLinesPerBlock, 1)
    batch_move(const __grid_constant__ BatchLaunch batch) {
    const EpochScope scope(batch.team);
    const std::size_t word = grid_group().first;
    if (word < batch.words) {
        const WordPlace place(batch, word);
        Words words;
        const bool came = exchange_words(batch, scope, place, words);
#pragma unroll
        for (int rank = 0; rank < abi::kMostDevices; ++rank)
            if (came && rank < batch.team.size)
                store_word(place.part.outputs[rank], place.at, place.part.bytes, words[rank]);
    }
    scope.end();
}

template <typename Reduction>
struct ReducedBatch {
    BatchLaunch batch;
    Reduction reduction;
};

template <typename Reduction>
__global__ void __launch_bounds__(abi::kLLLinesPerBlock, 1)
    batch_reduce(const __grid_constant__ ReducedBatch<Reduction> args) {
    const BatchLaunch& batch = args.batch;
    const EpochScope scope(batch.team);
    const std::size_t word = grid_group().first;
    if (word < batch.words) {
        const WordPlace place(batch, word);
        Words words;
        if (exchange_words(batch, scope, place, words))
            store_word(place.part.outputs[0], place.at, place.part.bytes,
                       combine_words(batch.team, words, args.reduction));
    }
    scope.end();
}

}  // namespace

Status launch_batch(const BatchLaunch& batch, Stream stream) {
    if (!batch.reduces) return launch_kernel(batch_move, batch, batch.plan, stream);
    return with_reduction(batch, [&]<typename Reduction>(const Reduction& reduction) {
        return launch_kernel(batch_reduce<Reduction>, {batch, reduction}, batch.plan, stream);
    });
}

}  // namespace pccl::kernels
