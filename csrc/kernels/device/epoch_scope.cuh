// How the blocks of one index synchronise on all ranks: epochs, entry barriers, exit barriers.
#pragma once

#include "csrc/abi/device_team.h"
#include "csrc/kernels/device/counters.cuh"
#include "csrc/kernels/device/ptx.cuh"
#include "csrc/kernels/device/waits.cuh"
#include "csrc/kernels/device/withdraw.cuh"

namespace pccl::kernels::device {

/// The scope of one epoch: one launch of one block, from its beginning to its end. All threads
/// construct it.
class EpochScope : public Numbered {
   public:
    __device__ explicit EpochScope(const abi::DeviceTeam& team)
        : EpochScope(team, channel_of(team)) {}

    [[nodiscard]] __device__ std::uint32_t epoch() const { return number(); }

    /// Where `sender` puts this epoch's lines for `receiver`.
    [[nodiscard]] __device__ abi::LLLine* lines(int receiver, int sender) const {
        return team_.heaps[receiver]->buffers[blockIdx.x].lines[epoch() & 1][sender];
    }

    struct Addresses {
        const std::byte* inputs[abi::kMostDevices];
        std::byte* outputs[abi::kMostDevices];
    };
    /// Entry barrier: publishes where this rank's tensors are, and reads where the peers' are. What
    /// the peers' streams held before this launch is visible afterwards to loads at system scope.
    /// False, on all threads, when a peer did not come: then it has withdrawn. Else exit(), or
    /// withdraw(), before the next launch enters there: entry lines have room for one epoch.
    [[nodiscard]] __device__ bool enter(const abi::PeerPointers& peer_pointers,
                                        Addresses& shared) const {
        announce(peer_pointers);
        return await_entry(shared);
    }
    /// The first half of it, which waits for nobody. Who does no more than this, and
    /// await_entries() at the end, may leave while others are still here; they must not need its
    /// entry lines by then.
    __device__ void announce(const abi::PeerPointers& peer_pointers) const {
        const int peer = static_cast<int>(threadIdx.x);
        if (peer >= team_.size) return;
        store_line(&own_entry_at(peer).input, line_of(peer_pointers.inputs[peer]));
        store_line(&own_entry_at(peer).output, line_of(peer_pointers.outputs[peer]));
    }
    /// What a peer has announced so far, for await_entries(): the load is on its way while its
    /// thread goes on.
    [[nodiscard]] __device__ abi::LLLine peek_entry() const {
        const int peer = static_cast<int>(threadIdx.x);
        return peer < team_.size ? load_line(&channel_->entries[peer].output) : abi::LLLine{};
    }
    /// All peers have announced themselves, or have left even, and are in the next epoch: not in a
    /// later one, which needs this rank. Reports who has called something else.
    __device__ void await_entries(const abi::LLLine& seen = {}) const {
        const int peer = static_cast<int>(threadIdx.x);
        if (peer >= team_.size) return;
        WaitDeadline deadline(team_);
        for (abi::LLLine line = seen;; line = peek_entry()) {
            if (line.low_epoch == epoch_after(epoch())) return;
            if (is_of_another_call(team_, line, epoch())) return report_mismatch(team_, peer);
            if (line.low_epoch == epoch()) return;
            if (!deadline.is_over(abi::DevicePhase::kEntry, peer)) continue;
            return deadline.give_up({abi::DevicePhase::kEntry, peer, epoch(), line.low_epoch});
        }
    }
    /// Lets the next launch come before end(), where the first warp's waits are over, `is_through`,
    /// and by what it has `seen`, or sees now, all peers are here, or in the next epoch even. Other
    /// warps may then wait for words of the messages that the first one has had a part of: their
    /// senders run, and wait for nobody else. By all threads.
    __device__ void allow_next_early(bool is_through, abi::LLLine& seen) const {
        const int peer = static_cast<int>(threadIdx.x);
        if (peer >= kWarpThreads) return;
        const auto is_here = [&] {
            return peer >= team_.size || seen.low_epoch == epoch() ||
                   seen.low_epoch == epoch_after(epoch());
        };
        if (!is_here()) seen = peek_entry();
        if (__all_sync(kWholeWarp, is_through && is_here()) != 0) allow_next_launch();
    }
    /// Exit barrier: returns when all peers have finished with this rank's tensors. With kRelease,
    /// what this block stored into theirs is visible to whatever follows in their streams. Until
    /// here, what was loaded from theirs is a guess: they may have given up meanwhile, and do not
    /// exit then.
    enum class Stores { kNone, kRelease };
    __device__ void exit(Stores stores) const {
        __syncthreads();
        const int peer = static_cast<int>(threadIdx.x);
        if (peer >= team_.size) return;
        std::uint32_t* there = &team_.heaps[peer]->channels[blockIdx.x].exited[team_.rank];
        if (stores == Stores::kRelease) {
            store_release(there, epoch());
        } else {
            store_relaxed(there, epoch());
        }
        // Not "at least": what a peer left there long ago may look so, once epochs have wrapped.
        const std::uint32_t now = epoch();
        const bool came =
            await_mark(team_, {abi::DevicePhase::kExit, &channel_->exited[peer], peer, now},
                       [now](std::uint32_t seen) { return seen == now; });
        if (!came) withdraw_from(team_, now, peer);
    }
    /// In place of exit() where this block has given up, and touches the peers' tensors no more.
    __device__ void withdraw() const {
        const int peer = static_cast<int>(threadIdx.x);
        if (peer < team_.size) withdraw_from(team_, epoch(), peer);
    }

    /// Ends the epoch; to be called by all threads, after their last wait.
    __device__ void end() const {
        __syncthreads();
        allow_next_launch();
        if (threadIdx.x == 0) channel_->epoch = epoch();
    }
    /// The same of a block that has given up what it may have begun to send to its peers: its later
    /// epochs are none of theirs, so that they do not take what it sends them then for the rest.
    __device__ void end_withdrawn() const {
        constexpr std::uint32_t kWithdrawn = 1U << 12;
        __syncthreads();
        allow_next_launch();
        if (threadIdx.x == 0) channel_->epoch = epoch() + kWithdrawn * (team_.rank + 1);
    }

   private:
    [[nodiscard]] __device__ bool await_entry(Addresses& shared) const {
        const int peer = static_cast<int>(threadIdx.x);
        bool came = true;
        if (peer < team_.size) {
            const abi::EntryLines* here = &channel_->entries[peer];
            EntryData entry_data{};
            came = await(here, abi::DevicePhase::kEntry, peer, entry_data);
            shared.inputs[peer] = reinterpret_cast<const std::byte*>(entry_data.input);
            shared.outputs[peer] = reinterpret_cast<std::byte*>(entry_data.output);
        }
        if (__syncthreads_and(came) != 0) return true;
        withdraw();
        return false;
    }

    [[nodiscard]] __device__ abi::EntryLines& own_entry_at(int peer) const {
        return team_.heaps[peer]->channels[blockIdx.x].entries[team_.rank];
    }

    static __device__ abi::Channel* channel_of(const abi::DeviceTeam& team) {
        await_launch_ahead();
        return &team.heaps[team.rank]->channels[blockIdx.x];
    }
    __device__ EpochScope(const abi::DeviceTeam& team, abi::Channel* channel)
        : Numbered(team, epoch_after(channel->epoch), team.fingerprint),
          team_(team),
          channel_(channel) {}

    const abi::DeviceTeam& team_;
    abi::Channel* channel_;
};

}  // namespace pccl::kernels::device
