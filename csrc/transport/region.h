// A region: memory that all ranks of a group on one host share, and the doorbells by which they
// wake each other.
//
// Rank 0 makes it and hands it to every other rank over a proven unix connection, in two fd
// messages: the memory, answered by the rank's doorbell; then, once rank 0 has them all, the
// doorbells of the others. So n ranks need n - 1 connections, and none stays open.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/transport/control/close_reason.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/region_memory.h"

namespace pccl::transport {

class PCCL_API Region {
   public:
    /// Of rank 0, which has claimed `memory` for `ranks`.
    static std::unique_ptr<Region> create(std::shared_ptr<RegionMemory> memory, int ranks);

    [[nodiscard]] std::span<std::byte> memory() const { return memory_->bytes(); }
    [[nodiscard]] const std::shared_ptr<RegionMemory>& source() const { return memory_; }
    /// Whether this rank can ring all others. Does not block; when rank 0 left too early, the
    /// reason that it told, or kPeerLost.
    Result<bool> is_complete();
    /// To be called after the store that `peer` waits for. On an incomplete region it may ring
    /// nobody; who waits looks now and then.
    void ring(Rank peer) {
        const auto& doorbell = doorbells_[static_cast<std::size_t>(peer)];
        if (doorbell != nullptr) doorbell->ring();
    }
    /// kPeerLost when the process of `peer` has ended. A system call: for now and then.
    [[nodiscard]] Status look(Rank peer) const;
    /// Whether the process of `peer` lived when all loads before this call were made; false says
    /// nothing.
    [[nodiscard]] bool is_process_alive(Rank peer) const {
        const auto& doorbell = doorbells_[static_cast<std::size_t>(peer)];
        return doorbell != nullptr && doorbell->is_owner_alive();
    }

    // How it comes about, in this order; for transports.

    /// Rank 0: sends the memory to `rank` over `socket`, and waits for its doorbell. Errors blame
    /// `rank`, and those of complete() the rank that they are about.
    Status offer(Rank rank, UniqueFd socket, const DoorbellHandles& own, Deadline deadline);
    /// Rank 0: sends everybody's doorbell to everybody, wakes all who wait for that, and closes the
    /// connections.
    Status complete(Deadline deadline);
    /// Rank 0, instead: tells all that have had the offer why it will not be completed.
    void call_off(const Status& reason);
    /// Another rank: nullptr until the offer has come. `own` is sent in answer.
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
    /// The next rank after `rank` whose doorbell this rank gets from rank 0.
    [[nodiscard]] std::size_t first_missing() const;

    const std::shared_ptr<RegionMemory> memory_;
    const Rank self_;
    UniqueFd socket_;                                         // to rank 0, until complete
    std::optional<CloseReasonReceiver> close_reason_;         // once rank 0 has called it off
    std::vector<std::unique_ptr<RemoteDoorbell>> doorbells_;  // by rank; none for this one
    std::vector<Guest> guests_;                               // rank 0: by rank, until complete
};

}  // namespace pccl::transport
