// SPDX-License-Identifier: Apache-2.0

// Synchronisation of the blocks of one index on all ranks: epochs, entry barriers, exit barriers.
#pragma once

#include "csrc/abi/device_team.h"
#include "csrc/kernels/device/counters.cuh"
#include "csrc/kernels/device/ptx.cuh"
#include "csrc/kernels/device/waits.cuh"
#include "csrc/kernels/device/withdraw.cuh"

namespace pccl::kernels::device {

/// Scope of one epoch: one launch of one block, from begin to end. All threads construct it.
class EpochScope : public Numbered {
   public:
    __device__ explicit EpochScope(const abi::DeviceTeam& team)
        : EpochScope(team, channel_of(team)) {}

    [[nodiscard]] __device__ std::uint32_t epoch() const { return number(); }

    /// Returns the place where `sender` stores this epoch's lines for `receiver`.
    [[nodiscard]] __device__ abi::LLLine* lines(int receiver, int sender) const {
        return team_.heaps[receiver]->buffers[blockIdx.x].lines[epoch() & 1][sender];
    }

    struct Addresses {
        const std::byte* inputs[abi::kMostDevices];
        std::byte* outputs[abi::kMostDevices];
    };
    /// Passes the entry barrier: publishes the addresses of this rank's tensors and reads those of
    /// the peers. Earlier writes in the peers' streams are then visible to loads at system scope.
    /// False, on all threads, when a peer did not arrive; the block has then withdrawn. After true,
    /// call exit() or withdraw() before the next launch enters: entry lines have room for one
    /// epoch.
    [[nodiscard]] __device__ bool enter(const abi::PeerPointers& peer_pointers,
                                        Addresses& shared) const {
        announce(peer_pointers);
        return await_entry(shared);
    }
    /// Runs the first half of enter(), which does not wait. A kernel that calls only this, and
    /// await_entries() at its end, may leave while others are still in the epoch; they must not
    /// need its entry lines by then.
    __device__ void announce(const abi::PeerPointers& peer_pointers) const {
        const int peer = static_cast<int>(threadIdx.x);
        if (peer >= team_.size) return;
        store_line(&own_entry_at(peer).input, line_of(peer_pointers.inputs[peer]));
        store_line(&own_entry_at(peer).output, line_of(peer_pointers.outputs[peer]));
    }
    /// Returns the present announcement of a peer, for await_entries(): the load is in flight while
    /// the thread continues.
    [[nodiscard]] __device__ abi::LLLine peek_entry() const {
        const int peer = static_cast<int>(threadIdx.x);
        return peer < team_.size ? load_line(&channel_->entries[peer].output) : abi::LLLine{};
    }
    /// Waits until each peer has announced itself in this epoch, or has already left for the next
    /// one. It cannot be in a later one, which requires this rank. Reports a mismatched peer.
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
    /// Lets the next launch begin before end() if the first warp has finished its waits
    /// (`is_through`) and all peers have reached this epoch or the next one, by `seen` or by a new
    /// look. Other warps may still wait for words of messages whose first part has arrived: the
    /// senders run and wait for no other rank. All threads call it.
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
    /// Stores to the peers' tensors that exit() publishes.
    enum class Stores { kNone, kRelease };
    /// Passes the exit barrier: returns when all peers have finished with this rank's tensors. With
    /// kRelease, this block's stores to the peers' tensors are visible to later work in their
    /// streams. Values loaded from the peers are provisional until here: a peer may have given up
    /// meanwhile, and then does not exit.
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
        // Requires equality, not "at least": an old value of the peer may compare as later once
        // epochs have wrapped.
        const std::uint32_t now = epoch();
        const bool came =
            await_mark(team_, {abi::DevicePhase::kExit, &channel_->exited[peer], peer, now},
                       [now](std::uint32_t seen) { return seen == now; });
        if (!came) withdraw_from(team_, now, peer);
    }
    /// Replaces exit() where this block has given up and no longer accesses the peers' tensors.
    __device__ void withdraw() const {
        const int peer = static_cast<int>(threadIdx.x);
        if (peer < team_.size) withdraw_from(team_, epoch(), peer);
    }

    /// Ends the epoch. All threads call it after their last wait.
    __device__ void end() const {
        __syncthreads();
        allow_next_launch();
        if (threadIdx.x == 0) channel_->epoch = epoch();
    }
    /// Ends the epoch of a block that gave up after it may have begun to send. Its later epochs
    /// differ from the peers', so that they do not take its later lines for the missing ones.
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

    static __device__ abi::BlockChannel* channel_of(const abi::DeviceTeam& team) {
        await_launch_ahead();
        return &team.heaps[team.rank]->channels[blockIdx.x];
    }
    __device__ EpochScope(const abi::DeviceTeam& team, abi::BlockChannel* channel)
        : Numbered(team, epoch_after(channel->epoch), team.fingerprint),
          team_(team),
          channel_(channel) {}

    const abi::DeviceTeam& team_;
    abi::BlockChannel* channel_;
};

}  // namespace pccl::kernels::device
