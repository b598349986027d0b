// SPDX-License-Identifier: Apache-2.0

// Thread that polls for events without a notification, such as the end of GPU work.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <pccl/export.h>
#include "csrc/base/threads/background_thread.h"

namespace pccl {

struct PollerOptions {
    std::string name;  // of the thread
    std::chrono::milliseconds interval{2};
    std::function<void()> prepare{};  // runs on the thread, first of all
};

class PCCL_API Poller {
   public:
    /// Event to watch. Neither function may throw or block for long: the other events would wait.
    struct Watched {
        std::function<bool()> is_over;
        std::function<void()> notify;  // called once
    };

    explicit Poller(PollerOptions options);
    /// Notifies for all events, over or not.
    ~Poller();
    Poller(const Poller&) = delete;
    Poller& operator=(const Poller&) = delete;

    /// Watches an event and notifies within about an interval after it is over. Events that end in
    /// one interval are notified in the order of their watch() calls.
    void watch(Watched watched);

   private:
    void run();
    /// Waits for the next check; returns true for the last one.
    bool await_look(std::vector<Watched>& open);

    const PollerOptions options_;
    std::mutex mutex_;  // guards the members below, except the thread
    std::condition_variable changed_;
    std::vector<Watched> added_;
    bool is_closed_ = false;
    BackgroundThread thread_;  // declared last: it uses the others
};

}  // namespace pccl
