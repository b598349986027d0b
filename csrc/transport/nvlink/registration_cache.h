// Which allocations of this rank its peers have mapped, and where: what zero-copy on ordinary
// tensors rests on.
//
// The first use of an allocation asks all peers to map it and waits for their answers; later ones
// find it here. Peers answer on a thread of their own, so a rank never waits for what another's
// user does. The same thread notices peers that are gone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/base/background_thread.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/peer_sockets.h"
#include "csrc/transport/nvlink/symmetric_heap.h"

namespace pccl::transport::nvlink {

class PCCL_API RegistrationCache {
   public:
    struct Options {
        sys::cuda::Driver& driver;
        int device = 0;
        const PeerSockets& sockets;          // of which it is the only reader from now on
        std::function<void()> on_lost = {};  // called once, when the first peer is gone
    };
    static Result<std::unique_ptr<RegistrationCache>> create(const Options& options);
    ~RegistrationCache();
    RegistrationCache(const RegistrationCache&) = delete;
    RegistrationCache& operator=(const RegistrationCache&) = delete;

    /// Where each rank sees `address`, whose allocation must hold the `bytes` from there on; its
    /// own rank sees it where it is. Errors: kInvalidArgument (no GPU memory), kUnsupported (memory
    /// that cannot be shared), kTimeout, kPeerLost.
    Result<PeerAddresses> find(sys::cuda::DeviceAddress address, std::size_t bytes,
                               Deadline deadline);
    /// kPeerLost once a peer is gone.
    [[nodiscard]] Status health() const;
    [[nodiscard]] std::size_t size() const;

   private:
    struct Message;
    struct Registration {
        sys::cuda::Allocation allocation;
        PeerAddresses bases{};
        int missing = 0;  // answers
        Status status{};  // the first refusal
    };
    /// Bytes of a message that has not wholly arrived.
    struct Inbox;

    explicit RegistrationCache(const Options& options);
    Status start();
    Result<PeerAddresses> found(const Registration& registration, sys::cuda::DeviceAddress address,
                                std::size_t bytes) const;
    Status announce(const sys::cuda::Allocation& allocation, Deadline deadline);
    void serve();
    void read(Rank peer);
    void handle(Rank peer, const Message& message);
    void map_for(Rank peer, const Message& request);
    void note_answer(Rank peer, const Message& answer);
    void lose(Rank peer, const Status& why);
    Status send(Rank peer, const Message& message, Deadline deadline);

    const Options options_;
    UniqueFd stop_;  // eventfd
    std::atomic<bool> stopping_{false};
    std::vector<Inbox> inboxes_;
    std::vector<std::mutex> send_mutexes_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable answered_;
    std::map<sys::cuda::DeviceAddress, Registration> registrations_;  // by base
    std::vector<sys::cuda::DeviceAddress> opened_;                    // of peers
    Status lost_;
    std::unique_ptr<BackgroundThread> server_;  // last: it stops first
};

}  // namespace pccl::transport::nvlink
