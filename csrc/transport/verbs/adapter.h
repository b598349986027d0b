// SPDX-License-Identifier: Apache-2.0

// RDMA device of this process with everything that its links share: protection domain, completion
// queues, and the state of its ports.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/verbs/device.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/mapping.h"
#include "csrc/transport/verbs/completion_queue.h"

namespace pccl::transport::verbs {

/// Registered memory of this process.
using MemoryRegion = sys::verbs::Handle<ibv_mr>;

/// Access of the device, and of peers, to registered memory.
enum class Access {
    kLocal,      // of this device alone
    kPeerWrite,  // peers write
    kPeer,       // peers read and write
};

/// Thread-safe.
class Adapter {
   public:
    /// Opens a device. `waiter` outlives it.
    static Result<std::shared_ptr<Adapter>> open(const std::string& name, Waiter& waiter);
    ~Adapter();
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;

    [[nodiscard]] const sys::verbs::Device& device() const { return *device_; }
    [[nodiscard]] const std::string& name() const { return device_->info().name; }
    [[nodiscard]] ibv_pd* domain() const { return domain_.get(); }
    [[nodiscard]] Waiter& waiter() const { return waiter_; }

    /// Registers memory. If peers reach it, its key is one that they have not had before: devices
    /// use the keys of ended registrations again. kResourceExhausted, with the limit and what
    /// raises it, where it cannot be locked.
    [[nodiscard]] Result<MemoryRegion> add(std::span<std::byte> memory, Access access);
    /// Registers memory that `file`, a dma-buf, contains from `offset` on. Peers reach it at its
    /// address. kUnsupported where the library or the driver takes no dma-bufs; keys and errors as
    /// of add().
    [[nodiscard]] Result<MemoryRegion> add_dmabuf(std::span<std::byte> memory, int file,
                                                  std::uint64_t offset, Access access);
    /// Returns a completion queue with room for a queue pair of so many requests, which are
    /// reserved.
    [[nodiscard]] Result<CompletionQueue*> queue_for(int requests);

    /// Takes events of the device, and returns whether it works: kPeerLost, without a rank, after a
    /// fatal one.
    Status check();
    /// Returns whether a port works, as far as events show: kPeerLost, without a rank, while it is
    /// down.
    Status check_port(int port);
    /// Returns how many events may have changed the addresses of a port (GID, LID) or its MTU since
    /// the adapter was opened.
    std::uint64_t changes_of(int port);

   private:
    static constexpr int kMostPorts = 255;

    Adapter(std::shared_ptr<sys::verbs::Device> device, Waiter& waiter)
        : device_(std::move(device)), waiter_(waiter) {}
    void note(const sys::verbs::AsyncEvent& event);
    [[nodiscard]] Result<MemoryRegion> register_once(std::span<std::byte> memory,
                                                     Access access) const;
    [[nodiscard]] Result<MemoryRegion> register_dmabuf_once(std::span<std::byte> memory, int file,
                                                            std::uint64_t offset,
                                                            Access access) const;
    /// Registers until the key is a new one. Keys that come again stay in use from then on, so that
    /// they come no more.
    [[nodiscard]] Result<MemoryRegion> with_new_key(
        Access access, const std::function<Result<MemoryRegion>()>& register_memory);
    /// Registers a few bytes without access of peers, in the hope for a key that they have had.
    Status block_key();
    [[nodiscard]] Status registration_error(int error, std::size_t bytes) const;

    const std::shared_ptr<sys::verbs::Device> device_;
    Waiter& waiter_;
    sys::verbs::Handle<ibv_pd> domain_;
    bool is_watched_ = false;
    std::mutex mutex_;
    std::vector<std::unique_ptr<CompletionQueue>> queues_;
    std::vector<std::string> port_failures_;  // by number; empty: the port works
    std::vector<std::uint64_t> changes_;      // by number
    std::string failure_;                     // of the whole device
    std::mutex keys_mutex_;
    std::unordered_set<std::uint32_t> published_;  // keys that peers have had; guarded by
                                                   // keys_mutex_, as are the following
    Mapping blocker_;                              // set by the first block_key()
    std::vector<MemoryRegion> blocked_;
};

}  // namespace pccl::transport::verbs
