// SPDX-License-Identifier: Apache-2.0

// Handles that the backend's operations return.
//
// A work holds all it needs (events, tensors, the observer), never its backend: torch keeps works
// without a waiter until the process ends. Futures and hooks run users' code, which may take the
// GIL or wait for another collective. They never run under a lock, and only on the thread that
// issued the work or on the observer's.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/comm/communicator.h"
#include "csrc/torch/observer.h"
#include "csrc/torch/request.h"
#include "csrc/torch/staging.h"

namespace pccl::backend {

class PcclWork final : public c10d::Work {
   public:
    /// Memory of an operation, which is finished once the operation is done.
    struct StagedMemory {
        TensorStaging staging;
        bool may_fail_alone = false;  // while other ranks consider the operation done
    };

    /// Opens the profiler's event, with the shapes of the inputs; takes the outputs of `request`.
    PcclWork(Rank rank, Request& request, std::shared_ptr<WorkObserver> observer,
             std::weak_ptr<comm::CommunicatorImpl> communicator);

    [[nodiscard]] const char* title() const { return title_; }

    /// Finishes a stage. An error that this rank alone may have aborts the group, so that the
    /// others fail, too.
    [[nodiscard]] Status finish_stage(const TensorStaging& staging, bool may_fail_alone) const;
    /// Ends an operation that ran on the caller's thread.
    void finish_now(const Status& status);
    /// Ends when all `events` have ended, and finishes the `stages` then. Until then, keeps them
    /// and itself alive. A `failure` becomes the outcome.
    void finish_after(std::vector<Event> events, std::vector<StagedMemory> stages,
                      Status failure = {});

    bool wait(std::chrono::milliseconds timeout) override;
    std::vector<at::Tensor> result() override;
    int sourceRank() const override;
    void abort() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    float getDuration() const override;
    std::uint64_t getSequencenumber() const override;

   private:
    void complete(const Status& status);
    void resolve_future();
    void report();
    void notify_users();
    [[nodiscard]] Status outcome() const;

    const char* const title_;
    const std::uint64_t sequence_;
    const std::shared_ptr<WorkObserver> observer_;
    const std::weak_ptr<comm::CommunicatorImpl> communicator_;
    std::vector<at::Tensor> outputs_;
    std::vector<Event> events_;
    std::vector<StagedMemory> stages_;
    Status failure_;  // before any event existed
    std::atomic<std::size_t> running_{0};
    c10::intrusive_ptr<c10::ivalue::Future> future_;  // made on first use; guarded by mutex_
    bool resolved_ = false;                           // guarded by mutex_
    const bool timed_;
    const pthread_t issuer_ = ::pthread_self();
    TimePoint started_{};
    TimePoint finished_{};
};

/// Work of all operations of a coalescing window.
class BatchWork final : public c10d::Work {
   public:
    BatchWork(Rank rank, std::vector<c10::intrusive_ptr<c10d::Work>> works);

    bool isCompleted() override;
    bool isSuccess() const override;
    std::exception_ptr exception() const override;
    bool wait(std::chrono::milliseconds timeout) override;
    std::vector<at::Tensor> result() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

   private:
    std::vector<c10::intrusive_ptr<c10d::Work>> works_;
};

}  // namespace pccl::backend
