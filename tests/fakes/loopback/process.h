// SPDX-License-Identifier: Apache-2.0

// Simulated process of a loopback fabric, as its links and its peers use it.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/unique_fd.h"
#include "tests/fakes/loopback/pipe.h"

namespace pccl::transport::loopback {

class Process;

/// Connection that waits to be accepted.
struct LoopbackCall {
    enum class Outcome { kPending, kAccepted, kRefused, kNobody };

    Introduction introduction;
    Secret secret{};
    std::string where;  // the callee's address, for messages
    std::weak_ptr<Process> caller;
    std::string answer{};  // to a query, set once it is accepted
    std::atomic<Outcome> outcome{Outcome::kPending};

    void finish(Outcome result);
    /// Returns false while the call is pending; kPeerLost where no process accepted it.
    [[nodiscard]] Result<bool> is_accepted() const;
    /// Returns a kTimeout that names the peer.
    [[nodiscard]] Status timeout_error() const;

   private:
    [[nodiscard]] Rank peer() const { return introduction.request.destination; }
    [[nodiscard]] std::string name() const;
};

/// Simulated process. Thread-safe.
class Process {
   public:
    /// Creates a process. `waiter` lives until die().
    static Result<std::shared_ptr<Process>> create(int index, Waiter& waiter,
                                                   const FaultPlan& faults);

    [[nodiscard]] Waiter& waiter() { return waiter_; }
    [[nodiscard]] int index() const { return index_; }
    void wake();
    /// Counts a call of this process, which may be its last: kAborted from then on.
    Status live();
    /// Attaches this process to one end of `pipe`, until the process dies.
    void hold(const std::shared_ptr<Pipe>& pipe, Pipe::End end);

    /// Returns the registry of memory that peers may access.
    [[nodiscard]] const std::shared_ptr<RmaRegistry>& memory() const { return memory_; }

    /// Delivers a call, which an inline_host answers at once.
    void ring(const std::shared_ptr<LoopbackCall>& call);
    [[nodiscard]] int call_fd() const { return ringing_.get(); }
    /// Answers all calls.
    void answer_calls(ControlHost& host);
    [[nodiscard]] bool is_dead() const { return dead_; }
    /// Ends all links; the process is unreachable from now on.
    void die();

    /// Host that answers calls on the caller's own thread; null while
    /// LoopbackControlPlane::advance() does.
    std::atomic<ControlHost*> inline_host{nullptr};

   private:
    std::deque<std::shared_ptr<LoopbackCall>> take_calls();

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
    const std::uint64_t last_call_;  // 0: no limit
    const std::shared_ptr<RmaRegistry> memory_ = RmaRegistry::create();
    std::atomic<std::uint64_t> calls_{0};
    UniqueFd ringing_;  // eventfd
    std::mutex mutex_;
    std::atomic<bool> dead_{false};
    std::deque<std::shared_ptr<LoopbackCall>> incoming_;
    std::vector<Holding> holdings_;
};

}  // namespace pccl::transport::loopback
