// SPDX-License-Identifier: Apache-2.0

// Completion queue of an RDMA device, which the queue pairs of many links share.
//
// Any thread that polls takes completions for all: it holds the queue's lock, and puts each
// completion into the inbox of its queue pair, from where the thread of that link takes it.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/sys/verbs/device.h"
#include "csrc/transport/doorbell.h"

namespace pccl::transport::verbs {

/// Completed work request.
struct WorkCompletion {
    std::uint64_t id = 0;  // of the request
    ibv_wc_status status = IBV_WC_SUCCESS;
    std::uint32_t vendor_error = 0;
    std::uint32_t immediate = 0;  // of a received write
    std::uint32_t bytes = 0;      // of a received write
};

/// Completions of one queue pair, from the thread that polls the queue to the thread of the link.
class CompletionInbox {
   public:
    /// `most`: the requests of both queues of the pair.
    explicit CompletionInbox(std::size_t most);

    /// Adds a completion; false where there is no room, which a correct device never makes true.
    bool push(const WorkCompletion& completion);
    /// Takes the next completion; false where there is none.
    bool pop(WorkCompletion& completion);
    [[nodiscard]] bool is_empty() const {
        return read_ == written_.load(std::memory_order_acquire);
    }

   private:
    std::vector<WorkCompletion> ring_;  // its size is a power of two
    alignas(kCacheLine) std::atomic<std::uint64_t> written_{0};
    alignas(kCacheLine) std::uint64_t read_ = 0;
    std::atomic<std::uint64_t> freed_{0};
};

/// Thread-safe.
class CompletionQueue final : public BeforeSleep {
   public:
    /// Creates a queue with room for `entries` completions, or as many as the device allows.
    /// `waiter` outlives it: events of the queue end its sleeps.
    static Result<std::unique_ptr<CompletionQueue>> create(const sys::verbs::Device& device,
                                                           int entries, Waiter& waiter);
    ~CompletionQueue();
    CompletionQueue(const CompletionQueue&) = delete;
    CompletionQueue& operator=(const CompletionQueue&) = delete;

    [[nodiscard]] ibv_cq* handle() const { return queue_.get(); }
    /// Reserves entries for a queue pair; false where they do not fit. release() gives them back.
    bool reserve(int entries);
    void release(int entries);
    /// Delivers completions of the queue pair with that number to `inbox`, until remove().
    void add(std::uint32_t number, CompletionInbox& inbox);
    void remove(std::uint32_t number);

    /// Takes what has completed, unless another thread is doing that. kPeerLost, without a rank,
    /// once the device has failed.
    Status poll();
    void before_sleep() override;

   private:
    static constexpr int kAtOnce = 32;

    CompletionQueue(const sys::verbs::Device& device, Waiter& waiter)
        : device_(device), waiter_(waiter) {}
    Status take_completions();
    void deliver(const ibv_wc& completion);
    bool drain_events();

    const sys::verbs::Device& device_;
    Waiter& waiter_;
    sys::verbs::Handle<ibv_comp_channel> channel_;  // before the queue that uses it
    sys::verbs::Handle<ibv_cq> queue_;
    bool is_watched_ = false;
    std::mutex mutex_;
    int free_ = 0;
    std::unordered_map<std::uint32_t, CompletionInbox*> inboxes_;
    std::uint64_t events_ = 0;  // not acknowledged yet
    Status failure_;
    std::array<ibv_wc, kAtOnce> taken_{};
};

}  // namespace pccl::transport::verbs
