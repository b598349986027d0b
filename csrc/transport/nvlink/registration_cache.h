// SPDX-License-Identifier: Apache-2.0

// Cache of the allocations of this rank that its peers have mapped: the basis of zero-copy on
// ordinary tensors.
//
// The first use of an allocation requests all peers to map it and waits for their answers; later
// uses find it here. Peers answer on a thread of their own, so a rank never waits for the user's
// calls of another. That thread also notices peers that are gone, or that send the reason why they
// leave.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/base/threads/background_thread.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/peer_sockets.h"
#include "csrc/transport/nvlink/symmetric_heap.h"

namespace pccl::transport::nvlink {

/// Allocation of this rank, with its address on every rank.
struct SharedAllocation {
    sys::cuda::Allocation allocation;
    PeerAddresses bases{};  // by rank; this rank's own is allocation.base

    [[nodiscard]] bool holds(sys::cuda::DeviceAddress address, std::size_t bytes) const {
        return address >= allocation.base && bytes <= allocation.bytes &&
               address - allocation.base <= allocation.bytes - bytes;
    }
    /// Returns the address at which `rank` maps `address`.
    [[nodiscard]] sys::cuda::DeviceAddress at(Rank rank, sys::cuda::DeviceAddress address) const {
        return bases[static_cast<std::size_t>(rank)] + (address - allocation.base);
    }
};

struct RegistrationCacheOptions {
    sys::cuda::Driver& driver;
    int device = 0;
    const PeerSockets& sockets;          // this cache is their only reader from now on
    std::function<void()> on_lost = {};  // called once, when the first peer is gone or leaves
};

class PCCL_API RegistrationCache {
   public:
    static Result<std::unique_ptr<RegistrationCache>> create(
        const RegistrationCacheOptions& options);
    ~RegistrationCache();
    RegistrationCache(const RegistrationCache&) = delete;
    RegistrationCache& operator=(const RegistrationCache&) = delete;

    /// Returns the allocation that contains the `bytes` from `address` on, once all peers have
    /// mapped it. Errors: kInvalidArgument (no GPU memory), kUnsupported (memory that cannot be
    /// shared), kTimeout, kPeerLost.
    Result<SharedAllocation> find(sys::cuda::DeviceAddress address, std::size_t bytes,
                                  Deadline deadline);
    /// Requests the peers to map the allocation at `address`, and does not wait for them.
    Status announce(sys::cuda::DeviceAddress address, Deadline deadline);
    /// Returns whether the `bytes` from `address` on lie in an allocation of a peer that is mapped
    /// here.
    [[nodiscard]] bool has_mapped(sys::cuda::DeviceAddress address, std::size_t bytes) const;
    /// Ends the group for `why`, which find() and health() return from now on, and sends it to the
    /// peers. Has no effect where the group has ended. Thread-safe.
    void leave(const Status& why);
    /// Ends the group, like leave(), for a reason that a peer sends to all others itself. Returns
    /// false where the group has ended before.
    bool end(const Status& why);
    /// Returns why the group has ended: kPeerLost, kTimeout or kMismatch, which name a rank, or the
    /// argument of leave().
    [[nodiscard]] Status health() const;
    /// Returns the error here for the reason `why` for which `peer` has ended the group. A rank
    /// does not blame itself.
    [[nodiscard]] Status as_reported_by(Rank peer, const Status& why) const;
    [[nodiscard]] std::size_t size() const;
    /// Makes the destructor leave peers' memory mapped: a kernel may still use it.
    void keep_mappings() { keeps_mappings_ = true; }

   private:
    struct Message;
    struct PendingRegistration {
        SharedAllocation shared;
        int missing = 0;  // answers
        Status status{};  // the first refusal
    };
    /// Bytes of a message that has not arrived completely.
    struct Inbox;

    explicit RegistrationCache(const RegistrationCacheOptions& options);
    Status start();
    using Lock = std::unique_lock<std::mutex>;
    /// Finds the registration of the allocation of `address`; null where that was freed since.
    Result<PendingRegistration*> known(sys::cuda::DeviceAddress address);
    /// Adds a registration, even if the request fails, and sends the request to the peers. Unlocks
    /// the mutex meanwhile.
    Status add(sys::cuda::DeviceAddress address, Deadline deadline, Lock& lock);
    [[nodiscard]] Status late(const PendingRegistration& registration) const;
    void forget_overlapping(const sys::cuda::Allocation& allocation);
    Status query_peers(const sys::cuda::Allocation& allocation, Deadline deadline);
    void serve();
    void read(Rank peer);
    void handle(Rank peer, const Message& message);
    void map_for(Rank peer, const Message& request);
    void note_answer(Rank peer, const Message& answer);
    [[nodiscard]] Status reason_of(Rank peer, const Message& close_reason) const;
    void lose(Rank peer, const Status& why);
    Status send(Rank peer, const Message& message, Deadline deadline);

    const RegistrationCacheOptions options_;
    UniqueFd stop_;  // eventfd
    std::atomic<bool> stopping_{false};
    bool keeps_mappings_ = false;
    std::vector<Inbox> inboxes_;
    std::vector<std::mutex> send_mutexes_;
    mutable std::mutex mutex_;  // guards the members below
    std::condition_variable answered_;
    std::map<sys::cuda::DeviceAddress, PendingRegistration> registrations_;  // by base
    std::multimap<sys::cuda::DeviceAddress, std::size_t> opened_;  // of peers: bytes by base
                                                                   // address
    Status over_;                                                  // why the group has ended
    std::unique_ptr<BackgroundThread> server_;                     // declared last, so that it
                                                                   // stops first
};

}  // namespace pccl::transport::nvlink
