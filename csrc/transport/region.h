// SPDX-License-Identifier: Apache-2.0

// Region: memory that all ranks of a group on one host share, and the doorbells by which they wake
// each other.
//
// Rank 0 creates the region and passes it to every other rank over an authenticated unix
// connection, in two messages with descriptors. The first carries the memory, and the rank answers
// with its doorbell. The second follows once rank 0 has all doorbells, and carries those of the
// others. So n ranks need n - 1 connections, and none stays open.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/unique_fd.h"
#include "csrc/transport/control/close_reason.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/region_memory.h"

namespace pccl::transport {

class PCCL_API Region {
   public:
    /// Creates the region on rank 0, which has claimed `memory` for `ranks`.
    static std::unique_ptr<Region> create(std::shared_ptr<RegionMemory> memory, int ranks);

    [[nodiscard]] std::span<std::byte> memory() const { return memory_->bytes(); }
    [[nodiscard]] const std::shared_ptr<RegionMemory>& source() const { return memory_; }
    /// Returns whether this rank can ring all others. Does not block. If rank 0 left too early,
    /// returns the reason that it sent, or kPeerLost.
    Result<bool> is_complete();
    /// Rings `peer`, after the store that it waits for. An incomplete region may have no doorbell
    /// of the peer; a waiting rank therefore polls now and then.
    void ring(Rank peer) {
        const auto& doorbell = doorbells_[static_cast<std::size_t>(peer)];
        if (doorbell != nullptr) doorbell->ring();
    }
    /// Returns kPeerLost when the process of `peer` has ended. Makes a system call: call it rarely.
    [[nodiscard]] Status look(Rank peer) const;
    /// Returns true if the process of `peer` lived when all loads before this call were made; false
    /// proves nothing.
    [[nodiscard]] bool is_process_alive(Rank peer) const {
        const auto& doorbell = doorbells_[static_cast<std::size_t>(peer)];
        return doorbell != nullptr && doorbell->is_owner_alive();
    }

    // Steps of construction, in this order; for transports.

    /// Sends the memory to `rank` over `socket`, and waits for its doorbell; on rank 0. Errors
    /// blame `rank`; errors of complete() blame the rank at fault.
    Status offer(Rank rank, UniqueFd socket, const DoorbellHandles& own, Deadline deadline);
    /// Sends all doorbells to all ranks, wakes the ranks that wait for them, and closes the
    /// connections; on rank 0.
    Status complete(Deadline deadline);
    /// Sends the reason to all ranks that received the offer, in place of complete(); on rank 0.
    void call_off(const Status& reason);
    /// Arguments of accept(), which runs on the other ranks: it returns nullptr until the offer has
    /// come, and sends `own` in answer.
    struct Expected {
        RegionExtent extent;
        Rank rank = 0;
        int ranks = 1;
    };
    static Result<std::unique_ptr<Region>> accept(UniqueFd& socket, const DoorbellHandles& own,
                                                  const Expected& expected);

   private:
    struct Guest {
        UniqueFd socket;
        std::vector<UniqueFd> handles;
    };

    Region(std::shared_ptr<RegionMemory> memory, Rank self, int ranks)
        : memory_(std::move(memory)), self_(self), doorbells_(static_cast<std::size_t>(ranks)) {}
    Status send_doorbells(Rank to, Deadline deadline);
    Status adopt_doorbells(std::span<UniqueFd> handles);
    /// Returns the next rank after `rank` whose doorbell rank 0 still has to send.
    [[nodiscard]] std::size_t first_missing() const;

    const std::shared_ptr<RegionMemory> memory_;
    const Rank self_;
    UniqueFd socket_;                                         // to rank 0, until complete
    std::optional<CloseReasonReceiver> close_reason_;         // set once rank 0 has called the
                                                              // region off
    std::vector<std::unique_ptr<RemoteDoorbell>> doorbells_;  // by rank; none for this one
    std::vector<Guest> guests_;                               // rank 0: by rank, until complete
};

}  // namespace pccl::transport
