// SPDX-License-Identifier: Apache-2.0

// An operation in flight: its state, its deadline and its callbacks.
//
// A group advances its operations under the group's lock; any thread may check whether they are
// done.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <pccl/collective.h>
#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/runtime/flight/flight_recorder.h"

namespace pccl::runtime {

class Operation;

/// Interface that makes progress on an operation while a thread waits for it; its group implements
/// it.
class ProgressEngine {
   public:
    /// Makes progress on this thread until `operation` is done.
    virtual Status progress(Operation& operation, Deadline deadline) = 0;
    /// Makes progress on this thread until the operation has sent all its data.
    virtual Status flush(Operation& operation) = 0;

   protected:
    ~ProgressEngine() = default;
};

class Operation {
   public:
    virtual ~Operation() = default;

    // Under the group's lock:

    /// Returns whether this rank's links have accepted all its data.
    [[nodiscard]] virtual bool is_flushed() const = 0;
    /// Returns, for example, "all_reduce #12 (sum of 1024 float32)".
    [[nodiscard]] virtual std::string describe() const = 0;
    [[nodiscard]] Deadline deadline() const { return deadline_; }
    /// Ends the operation. The caller runs notify() once it holds no lock.
    void finish(Status status, Rank source = kNoRank);
    /// Records the success of an operation without callbacks or events.
    void finish_unseen();
    /// Returns when it was issued.
    [[nodiscard]] TimePoint issued() const { return issued_; }
    /// Returns when it ended, once it has.
    [[nodiscard]] TimePoint ended() const { return ended_; }

    // Thread-safe:

    [[nodiscard]] bool is_done() const { return done_.load(std::memory_order_acquire); }
    /// Returns the outcome; ok while the operation runs.
    [[nodiscard]] Status status() const { return is_done() ? status_ : Status::ok(); }
    [[nodiscard]] Rank source() const { return is_done() ? source_ : kNoRank; }
    [[nodiscard]] Timing timing() const {
        return is_done() ? timing_ : Timing{timing_.issued, {}, {}};
    }
    void on_done(std::function<void(const Status&)> callback);
    [[nodiscard]] bool has_callbacks();
    /// Runs the callbacks of an operation that is done.
    void notify();
    [[nodiscard]] const std::shared_ptr<ProgressEngine>& engine() const { return engine_; }

   protected:
    /// Prepares the object for a new run, which is recorded under `ticket`. `engine` is null for
    /// operations without an event; these take no times.
    void begin(std::shared_ptr<ProgressEngine> engine, TimePoint now, Deadline deadline,
               FlightRecorder::Ticket ticket);
    void mark_started();

   private:
    std::atomic<bool> done_{false};
    Status status_;
    Rank source_ = kNoRank;
    TimePoint issued_{};
    TimePoint ended_{};
    Timing timing_;
    Deadline deadline_ = Deadline::never();
    FlightRecorder::Ticket ticket_ = 0;
    std::shared_ptr<ProgressEngine> engine_;
    std::mutex mutex_;  // guards callbacks_, and finishing against adding
    std::vector<std::function<void(const Status&)>> callbacks_;
};

}  // namespace pccl::runtime
