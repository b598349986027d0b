// SPDX-License-Identifier: Apache-2.0

// Common part of both ends of a link: the lock between the thread that uses a link and the
// thread that polls it, the peer, and the error.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include <pccl/status.h>
#include "csrc/base/fork.h"
#include "csrc/base/ids.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/netplugin/comm.h"
#include "csrc/transport/netplugin/progress.h"
#include "csrc/transport/peer_watch.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::transport::netplugin {

struct LinkParts {
    Rank peer = kNoRank;
    std::string peer_name;  // "rank 3 at 10.0.0.5:4433", for messages
    Caller caller;
    std::shared_ptr<Waiter> waiter;  // of the program, which may end before a call of the plug-in
    PeerWatch watch;                 // uses the waiter
};

class LinkCore : public Polled {
   public:
    /// Lock of the calls of the plug-in for one link. It is free again after a few calls, unless
    /// the plug-in blocks.
    using Lock = std::unique_lock<std::mutex>;

    explicit LinkCore(LinkParts parts) : parts_(std::move(parts)) {}

    /// Locks for a thread that uses the link. Not locked where the polling thread has the link:
    /// once that is done, it ends the program's sleeps.
    [[nodiscard]] Lock try_use();
    /// Locks for the end of a link; not locked where the plug-in blocks, and in a
    /// child of fork().
    [[nodiscard]] Lock use_at_end();
    /// Returns the error where the plug-in does not return from its call for this link.
    Status check_call();
    /// Ends all calls of the plug-in. Returns the error once the reason has come why the peer is
    /// gone, if it is.
    Status fail(const Status& fault);
    /// Returns fail() of an earlier fault, if there is one.
    Status check_fault() { return fault_.is_ok() ? Status::ok() : fail(fault_); }
    Status look() { return parts_.watch.look(); }
    /// Looks at most every some milliseconds; for a caller that waits.
    Status look_now_and_then();
    void abort(const Status& reason);
    [[nodiscard]] StickyStatus& status() { return status_; }

    [[nodiscard]] bool is_over() override { return is_over_.load(std::memory_order_acquire); }
    Activity poll() final;

   protected:
    /// Makes progress, under the lock.
    virtual Result<Activity> advance() = 0;
    [[nodiscard]] bool has_fault() const { return !fault_.is_ok(); }
    void set_over() { is_over_.store(true, std::memory_order_release); }

    LinkParts parts_;

   private:
    Activity advance_or_fail();

    const ForkMark made_in_;
    std::mutex mutex_;
    std::atomic<bool> is_wanted_{false};
    std::atomic<bool> is_over_{false};
    Status fault_;  // of a call of the plug-in; guarded by mutex_
    TimePoint looked_{};
    StickyStatus status_;
};

}  // namespace pccl::transport::netplugin
