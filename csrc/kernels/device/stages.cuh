// Reductions of large messages: everybody pushes, in turns, what others reduce into stages of their
// heaps. Pushing and reducing have blocks of their own, so that NVLink does not wait for either.
#pragma once

#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/turns.cuh"

namespace pccl::kernels::device {

/// Half of a grid pushes, the other half reduces; block b and block b + grid / 2 are a pair.
enum class Role : int { kPush = 0, kReduce = 1 };
struct Pair {
    Role role;
    int index;
    int count;  // pairs in the grid
};
__device__ __forceinline__ Pair this_pair() {
    const int count = static_cast<int>(gridDim.x) / 2;
    const int block = static_cast<int>(blockIdx.x);
    if (block < count) return {Role::kPush, block, count};
    return {Role::kReduce, block - count, count};
}

/// What a pair passes in stage `index` (from 0 in each launch) of `bytes`.
struct Range {
    std::size_t begin;
    std::size_t bytes;
};
__device__ __forceinline__ Range stage_range(const Pair& pair, std::size_t bytes, int index) {
    const std::size_t at =
        (pair.index + index * static_cast<std::size_t>(pair.count)) * abi::kStageBytes;
    const std::size_t begin = min(at, bytes);
    return {begin, min(bytes - begin, abi::kStageBytes)};
}
/// How many stages the pair passes.
__device__ __forceinline__ int stage_count(const Pair& pair, std::size_t bytes) {
    const std::size_t all = (bytes + abi::kStageBytes - 1) / abi::kStageBytes;
    return static_cast<int>((all + pair.count - 1 - pair.index) / pair.count);
}

/// The stages of one pair, as one of its blocks sees them. They are numbered over all launches;
/// number s may be filled once s - 2 has been reduced. Members that wait are to be called by all
/// threads, and return false when a peer did not come that far.
class Stages {
   public:
    __device__ Stages(const abi::DeviceTeam& team, const Pair& pair)
        : team_(team), pair_(pair), begun_(ended()) {}

    /// Where `sender` puts its part of stage `index` for `receiver`.
    [[nodiscard]] __device__ std::byte* at(int receiver, int sender, int index) const {
        return team_.heaps[receiver]->stages[pair_.index].bytes[number(index) & 1][sender];
    }

    /// Pushing: waits until all peers have room for stage `index`.
    [[nodiscard]] __device__ bool await_room(int index) const {
        return await_all(channel_of(team_.rank).emptied, number(index) - 2);
    }
    /// Pushing: waits until the next rank has left the peer of `turn` (turns.cuh).
    [[nodiscard]] __device__ bool begin_turn(int index, int turn) const {
        bool came = true;
        if (turn > 1 && threadIdx.x == 0)
            came = await_counter(team_, abi::DevicePhase::kTurn, &channel_of(team_.rank).stage_turn,
                                 (team_.rank + 1) % team_.size, turn_number(index, turn - 1));
        return __syncthreads_and(came) != 0;
    }
    __device__ void end_turn(int index, int turn) const {
        __syncthreads();
        const int before = (team_.rank + team_.size - 1) % team_.size;
        if (threadIdx.x == 0)
            store_relaxed(&channel_of(before).stage_turn, turn_number(index, turn));
    }
    /// Pushing: what this block stored for its peers in stage `index` is complete.
    __device__ void hand_over(int index) const {
        __syncthreads();
        const int peer = static_cast<int>(threadIdx.x);
        if (peer < team_.size) store_release(&channel_of(peer).arrived[team_.rank], number(index));
    }

    /// Reducing: waits for stage `index` of all peers.
    [[nodiscard]] __device__ bool await_arrival(int index) const {
        return await_all(channel_of(team_.rank).arrived, number(index));
    }
    /// Reducing: what the peers stored in stage `index` has been read.
    __device__ void give_back(int index) const {
        __syncthreads();
        const int peer = static_cast<int>(threadIdx.x);
        if (peer < team_.size) store_relaxed(&channel_of(peer).emptied[team_.rank], number(index));
    }

    /// After the last of `count` stages.
    __device__ void end(int count) const {
        __syncthreads();
        if (threadIdx.x != 0) return;
        ended() = begun_ + count;
        if (pair_.role == Role::kReduce)
            store_release(&channel_of(team_.rank).reduced, begun_ + count);
    }

   private:
    [[nodiscard]] __device__ std::uint32_t number(int index) const { return begun_ + index + 1; }
    [[nodiscard]] __device__ std::uint32_t turn_number(int index, int turn) const {
        return number(index) * abi::kMostDevices + turn;
    }
    [[nodiscard]] __device__ bool await_all(const std::uint32_t* counters,
                                            std::uint32_t wanted) const {
        const int peer = static_cast<int>(threadIdx.x);
        bool came = true;
        if (peer < team_.size && peer != team_.rank)
            came = await_counter(team_, abi::DevicePhase::kStage, counters + peer, peer, wanted);
        return __syncthreads_and(came) != 0;
    }
    [[nodiscard]] __device__ abi::Channel& channel_of(int rank) const {
        return team_.heaps[rank]->channels[pair_.index];
    }
    [[nodiscard]] __device__ std::uint32_t& ended() const {
        return channel_of(team_.rank).stages_ended[static_cast<int>(pair_.role)];
    }

    const abi::DeviceTeam& team_;
    const Pair pair_;
    const std::uint32_t begun_;
};

/// A tensor that is cut into a part for each rank: this rank reduces its own.
struct Parts {
    std::size_t length;  // of a part
    std::size_t bytes;   // of the tensor: the last parts may be shorter

    [[nodiscard]] __device__ Range of(int rank) const {
        const std::size_t begin = min(length * rank, bytes);
        return {begin, min(length, bytes - begin)};
    }
};

/// Pushes all parts but this rank's own to those who reduce them.
__device__ __forceinline__ bool push_parts(const abi::DeviceTeam& team, const Pair& pair,
                                           const Parts& parts, const std::byte* input) {
    const Stages stages(team, pair);
    const int count = stage_count(pair, parts.length);
    bool came = true;
    for (int index = 0; came && index < count; ++index) {
        came = stages.await_room(index);
        for (int turn = 1; came && turn < team.size; ++turn) {
            came = stages.begin_turn(index, turn);
            if (!came) break;
            const int peer = (team.rank + turn) % team.size;
            const Range part = parts.of(peer);
            const Range range = stage_range(pair, part.bytes, index);
            copy_bytes(block_crew(), input + part.begin + range.begin,
                       stages.at(peer, team.rank, index), range.bytes);
            stages.end_turn(index, turn);
        }
        stages.hand_over(index);
    }
    stages.end(count);
    return came;
}

/// Reduces this rank's part of all inputs into `output`, where that part begins.
template <int kMost, typename Reduction>
__device__ __forceinline__ bool reduce_part(const abi::DeviceTeam& team, const Pair& pair,
                                            const Parts& parts, const std::byte* input,
                                            std::byte* output, const Reduction& reduction) {
    const Stages stages(team, pair);
    const int count = stage_count(pair, parts.length);
    const Range part = parts.of(team.rank);
    bool came = true;
    for (int index = 0; came && index < count; ++index) {
        came = stages.await_arrival(index);
        if (!came) break;
        const Range range = stage_range(pair, part.bytes, index);
        Sources from{};
        from.count = team.size;
        from.at[0] = input + part.begin + range.begin;
#pragma unroll
        for (int turn = 1; turn < kMost; ++turn)
            from.at[turn] = stages.at(team.rank, (team.rank + turn) % team.size, index);
        Targets to{};
        to.at[0] = output + range.begin;
        to.count = 1;
        combine_bytes<kMost>(block_crew(), from, to, range.bytes, reduction);
        stages.give_back(index);
    }
    stages.end(count);
    return came;
}

/// Returns when both blocks of the pair have passed all stages: this rank's part is reduced.
[[nodiscard]] __device__ __forceinline__ bool await_reduced(const abi::DeviceTeam& team,
                                                            const Pair& pair) {
    if (pair.role == Role::kReduce) return true;
    const abi::Channel& channel = team.heaps[team.rank]->channels[pair.index];
    bool came = true;
    if (threadIdx.x == 0)
        came = await_counter(team, abi::DevicePhase::kStage, &channel.reduced, team.rank,
                             channel.stages_ended[static_cast<int>(Role::kPush)]);
    return __syncthreads_and(came) != 0;
}

}  // namespace pccl::kernels::device
