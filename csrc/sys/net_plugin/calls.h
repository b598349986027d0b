// SPDX-License-Identifier: Apache-2.0

// Record of the calls that run in a plug-in, for a watchdog: nothing can end a call that does not
// return, but the plug-in is named.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <pccl/deadline.h>

namespace pccl::sys::net_plugin {

/// Place of one call at a time. The calls of a slot exclude each other.
class CallSlot {
   public:
    /// `subject` is whom calls are for, "a link to rank 3".
    explicit CallSlot(std::string subject) : subject_(std::move(subject)) {}

    void enter(const char* call) { call_.store(call, std::memory_order_release); }
    void leave() {
        ++count_;
        call_.store(nullptr, std::memory_order_release);
    }
    [[nodiscard]] const std::string& subject() const { return subject_; }
    /// Returns whether the watchdog has given up the present call.
    [[nodiscard]] bool is_stuck() const { return is_stuck_.load(std::memory_order_relaxed); }

   private:
    friend class CallWatch;
    const std::string subject_;
    std::atomic<const char*> call_{nullptr};
    std::atomic<std::uint64_t> count_{0};  // of calls that have returned
    std::atomic<bool> is_stuck_{false};
    // Only the watchdog uses these:
    std::uint64_t seen_count_ = 0;
    TimePoint since_{};
};

/// Marks a call while this object lives.
class CallMark {
   public:
    CallMark(CallSlot& slot, const char* call) : slot_(slot) { slot_.enter(call); }
    ~CallMark() { slot_.leave(); }
    CallMark(const CallMark&) = delete;
    CallMark& operator=(const CallMark&) = delete;

   private:
    CallSlot& slot_;
};

/// Slots of a plug-in. Thread-safe.
class CallWatch {
   public:
    [[nodiscard]] std::shared_ptr<CallSlot> add(std::string subject);
    /// Returns a line for each call that has not returned for `limit`, "isend for a link to rank
    /// 3"; each call once.
    [[nodiscard]] std::vector<std::string> overdue(TimePoint now, Duration limit);

   private:
    std::mutex mutex_;
    std::vector<std::weak_ptr<CallSlot>> slots_;  // guarded by mutex_
};

}  // namespace pccl::sys::net_plugin
