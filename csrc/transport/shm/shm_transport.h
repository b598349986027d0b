// SPDX-License-Identifier: Apache-2.0

// Shared memory between processes of one host.
//
// A link is a memfd of rings that the sender makes. The sender passes it, with its doorbell, over
// the unix socket of the receiver's control plane, on which both have proven the group's secret;
// the receiver answers with its doorbell. Both processes must run as one user. The socket stays
// open: its end shows that the peer has left. Regions travel the same way.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "csrc/transport/control/sides.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/region.h"
#include "csrc/transport/region_memory.h"
#include "csrc/transport/shm/link.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::shm {

class ShmRma;

class PCCL_API ShmTransport final : public Transport, private RegionSharing {
   public:
    /// Creates the transport. `waiter` outlives it and its links; the process listens at `here`.
    ShmTransport(Waiter& waiter, HostSide here) : waiter_(waiter), here_(std::move(here)) {}

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kShm; }
    [[nodiscard]] std::vector<std::string> addresses() const override {
        return {here_.socket.to_string()};
    }
    [[nodiscard]] Status reaches(const PeerAddress& peer) const override;
    Result<std::unique_ptr<PendingConnect>> connect(const PeerAddress& peer,
                                                    const LinkRequest& request,
                                                    const Secret& secret) override;
    void accept(Arrival arrival, LinkReceiver& receiver) override;
    void advance(LinkReceiver& receiver) override;
    [[nodiscard]] RegionSharing* regions() override { return this; }
    [[nodiscard]] Result<std::shared_ptr<RmaTransport>> one_sided() override;

   private:
    class ShmPendingConnect;
    /// Authenticated connection whose memory has not arrived yet.
    struct ExpectedLink {
        Arrival from;
        Deadline deadline;

        [[nodiscard]] const LinkRequest& request() const { return from.introduction.request; }
    };

    Result<std::unique_ptr<Region>> share(const RegionRequest& request, const Secret& secret,
                                          Deadline deadline) override;
    /// Returns true when the connection is accepted or refused.
    bool receive_memory(ExpectedLink& expected, LinkReceiver& receiver);
    /// Returns false while the memory has not arrived.
    Result<bool> receive_link(ExpectedLink& expected, LinkReceiver& receiver);
    Result<bool> receive_region(ExpectedLink& expected, LinkReceiver& receiver);
    Result<std::unique_ptr<RecvLink>> make_receiver(ExpectedLink& expected,
                                                    std::span<UniqueFd> descriptors);

    Waiter& waiter_;
    const HostSide here_;
    std::list<ExpectedLink> expected_;
    RegionStock stock_;
    std::mutex mutex_;
    std::shared_ptr<ShmRma> one_sided_;  // created on first use; guarded by mutex_
};

/// Checks whether this process can make memory for others to map, which limits (ulimit -f) and
/// filters of system calls may forbid: makes a region, and drops it. Errors as of
/// sys::make_memory_file().
[[nodiscard]] PCCL_API Status check_shared_memory(const Waiter& waiter);

/// Returns the bytes of data for each of a group's `ranks`: 16 MiB divided among them, but 64 KiB
/// to 2 MiB.
[[nodiscard]] PCCL_API std::size_t data_bytes(int ranks);
/// Returns the bytes of the region of a group of `ranks`: their data and the control structures.
[[nodiscard]] PCCL_API std::size_t region_bytes(int ranks);
/// Returns the size to which the region of a further group may shrink.
[[nodiscard]] PCCL_API std::size_t least_region_bytes(int ranks);

}  // namespace pccl::transport::shm
