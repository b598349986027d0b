// One of the processes that a loopback fabric pretends to have, as its links and its peers see it.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/base/unique_fd.h"
#include "csrc/transport/loopback/pipe.h"

namespace pccl::transport::loopback {

class Process;

/// A connection that waits to be accepted.
struct Call {
    enum class Outcome { kPending, kAccepted, kRefused, kNobody };

    LinkRequest request;
    Secret secret{};
    std::shared_ptr<Pipe> pipe;
    std::weak_ptr<Process> caller;
    std::atomic<Outcome> outcome{Outcome::kPending};

    void finish(Outcome result);
};

/// Safe from every thread.
class Process {
   public:
    /// `waiter` lives until die().
    static Result<std::shared_ptr<Process>> create(int index, Waiter& waiter,
                                                   const FaultPlan& faults);

    [[nodiscard]] Waiter& waiter() { return waiter_; }
    [[nodiscard]] int index() const { return index_; }
    void wake();
    /// Counts a call of this process, which may be its last: kAborted from then on.
    Status live();
    /// Becomes one of the two ends of `pipe`, for as long as the process lives.
    void hold(const std::shared_ptr<Pipe>& pipe, Pipe::End end);

    /// What its peers may reach.
    [[nodiscard]] const std::shared_ptr<RmaRegistry>& memory() const { return memory_; }

    void ring(const std::shared_ptr<Call>& call);
    [[nodiscard]] int call_fd() const { return ringing_.get(); }
    std::deque<std::shared_ptr<Call>> take_calls();
    /// Ends all links; nobody reaches the process from now on.
    void die();

    /// Who accepts calls on the caller's own thread; null while accept() does.
    std::atomic<Acceptor*> inline_acceptor{nullptr};

   private:
    struct Holding {
        std::weak_ptr<Pipe> pipe;
        Pipe::End end;
    };
    Process(int index, Waiter& waiter, const FaultPlan& faults)
        : index_(index),
          waiter_(waiter),
          last_call_(faults.doomed_process == index ? faults.dies_at_call : 0) {}

    const int index_;
    Waiter& waiter_;
    const std::uint64_t last_call_;  // 0: lives on
    const std::shared_ptr<RmaRegistry> memory_ = RmaRegistry::create();
    std::atomic<std::uint64_t> calls_{0};
    UniqueFd ringing_;  // eventfd
    std::mutex mutex_;
    std::atomic<bool> dead_{false};
    std::deque<std::shared_ptr<Call>> incoming_;
    std::vector<Holding> holdings_;
};

}  // namespace pccl::transport::loopback
