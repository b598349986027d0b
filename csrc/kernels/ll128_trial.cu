// SPDX-License-Identifier: Apache-2.0

// Trial whether LL128 lines arrive whole between all GPUs of a group (abi::LL128Line). That depends
// on GPUs and links, and no specification guarantees it.
//
// In every round all ranks send each other lines, and read those of their peers while they arrive.
// A rank that has received a peer's lines of one round can rely on that peer having received its
// own lines of the previous round. Two places are therefore enough.
#include "csrc/kernels/device/epoch_scope.cuh"
#include "csrc/kernels/device/ll128.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

constexpr std::uint32_t kRounds = 16;

class Tester {
   public:
    __device__ explicit Tester(const abi::DeviceTeam& team) : team_(team) {}

    /// Returns whether all lines arrived whole. `came` is false, on all threads of a warp, where
    /// they did not arrive.
    [[nodiscard]] __device__ bool run(bool& came) const {
        bool is_whole = true;
        came = true;
        for (std::uint32_t round = 1; round <= kRounds && came; ++round) {
            for (int step = 1; step < team_.size; ++step)
                send((team_.rank + step) % team_.size, round);
            for (int step = 1; step < team_.size && came; ++step)
                came = receive((team_.rank + step) % team_.size, round, is_whole);
        }
        return is_whole;
    }

   private:
    [[nodiscard]] __device__ abi::LL128Line* lines(int receiver, int sender,
                                                   std::uint32_t round) const {
        return team_.heaps[receiver]->trial[sender].lines[round % 2][threadIdx.x / 32] +
               2 * thread_.pair;
    }
    /// Returns this thread's data of a round; every 4 bytes differ from those of two rounds before.
    [[nodiscard]] __device__ static PairPackets packets(int sender, std::uint32_t round) {
        const std::uint32_t any = round * 0x9e3779b1U + (sender << 16) + threadIdx.x * 8;
        return {{{any, any + 1, any + 2, any + 3}, {any + 4, any + 5, any + 6, any + 7}}};
    }
    __device__ void send(int peer, std::uint32_t round) const {
        thread_.send(packets(team_.rank, round), lines(peer, team_.rank, round), round);
    }
    [[nodiscard]] __device__ bool receive(int peer, std::uint32_t round, bool& is_whole) const {
        PairPackets got{};
        if (!thread_.receive(team_, {lines(team_.rank, peer, round), true, round, peer}, got))
            return false;
        is_whole = is_whole && thread_.are_alike(got, packets(peer, round));
        return true;
    }

    const abi::DeviceTeam& team_;
    const LL128Thread thread_;
};

/// Reports to the peers how their lines arrived, reads their reports on this rank's lines, and
/// reports to the host. False where a peer did not report.
__device__ bool conclude(const abi::DeviceTeam& team, bool is_whole) {
    const auto outcome = [](bool whole) {
        return static_cast<std::uint32_t>(whole ? abi::LL128Trial::kWhole : abi::LL128Trial::kTorn);
    };
    const int peer = static_cast<int>(threadIdx.x);
    bool came = true;
    bool all_whole = true;
    if (peer < team.size) {
        store_release(&team.heaps[peer]->ll128_trials[team.rank], outcome(is_whole));
        const std::uint32_t* const reported = &team.heaps[team.rank]->ll128_trials[peer];
        came = await_mark(team, {abi::DevicePhase::kStep, reported, peer, outcome(true)},
                          [](std::uint32_t seen) { return seen != 0; });
        all_whole = load_acquire(reported) == outcome(true);
    }
    const bool is_complete = __syncthreads_and(came) != 0;
    all_whole = __syncthreads_and(all_whole) != 0;
    if (is_complete && threadIdx.x == 0)
        store_release(&team.control->ll128_trial, outcome(all_whole));
    return is_complete;
}

__global__ void __launch_bounds__(32 * abi::kTrialWarps)
    try_ll128(const __grid_constant__ Trial trial) {
    const EpochScope scope(trial.team);
    scope.announce({});
    bool came = false;
    const bool is_whole = Tester(trial.team).run(came);
    came = __syncthreads_and(came) != 0;
    const bool all_whole = __syncthreads_and(is_whole && trial.is_expected) != 0;
    if (came && conclude(trial.team, all_whole)) {
        scope.await_entries();
        scope.end();
    } else {
        scope.end_withdrawn();
    }
}

}  // namespace

Status launch_ll128_trial(const Trial& trial, Stream stream) {
    return launch_kernel(try_ll128, trial,
                         {.blocks = trial.is_loading ? 0 : 1, .threads = 32 * abi::kTrialWarps},
                         stream);
}

}  // namespace pccl::kernels
