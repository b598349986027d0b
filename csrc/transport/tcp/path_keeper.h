// SPDX-License-Identifier: Apache-2.0

// Thread that looks after links over several paths while their owners do something else: it sends
// again the data that a cut path has not carried, and connects lost paths again.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/threads/background_thread.h"

namespace pccl::transport::tcp {

class KeptLink {
   public:
    virtual ~KeptLink() = default;
    /// Makes progress; returns when the next call is due, Duration::max(): after the next kick().
    virtual Duration look_after(TimePoint now) = 0;
    /// Ends the link; returns true once the peer's host has everything that it sent.
    virtual bool close() = 0;
};

class PathKeeper {
   public:
    PathKeeper() = default;
    ~PathKeeper();
    PathKeeper(const PathKeeper&) = delete;
    PathKeeper& operator=(const PathKeeper&) = delete;

    /// Looks after a link until it is destroyed.
    void add(const std::shared_ptr<KeptLink>& link);
    /// Holds a link that is closed until the peer's host has everything, or for some seconds.
    void keep_until_closed(std::shared_ptr<KeptLink> link);
    /// Makes the thread look after links that have something in flight. Cheap.
    void kick() {
        kicks_.fetch_add(1);
        if (is_idle_.load()) wake();
    }

   private:
    void keep_until_stopped();
    Duration look_after_all();
    void close_ended();
    void wake();

    std::atomic<unsigned> kicks_{0};
    std::atomic<bool> is_idle_{false};
    std::mutex mutex_;  // guards the next members
    std::condition_variable news_;
    bool stops_ = false;
    std::vector<std::weak_ptr<KeptLink>> links_;
    struct ClosingLink {
        std::shared_ptr<KeptLink> link;
        Deadline deadline;
    };
    std::vector<ClosingLink> closing_;
    std::unique_ptr<BackgroundThread> thread_;  // last
};

}  // namespace pccl::transport::tcp
