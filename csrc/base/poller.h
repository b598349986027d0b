// A thread that polls what ends without a notification, such as the work of a GPU.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/background_thread.h"
#include "csrc/base/export.h"

namespace pccl {

struct PollerOptions {
    std::string name;  // of the thread
    std::chrono::milliseconds interval{2};
    std::function<void()> prepare{};  // runs on the thread, before anything else
};

class PCCL_API Poller {
   public:
    /// Neither may throw or wait for long: what else is watched waits for it.
    struct Watched {
        std::function<bool()> is_over;
        std::function<void()> notify;  // called once
    };

    explicit Poller(PollerOptions options);
    /// Tells of all that is watched, over or not.
    ~Poller();
    Poller(const Poller&) = delete;
    Poller& operator=(const Poller&) = delete;

    /// Tells within about an interval after it is over; what ends in one interval, in the order of
    /// calls.
    void watch(Watched watched);

   private:
    void run();
    /// Waits until there is something to look at; true when that is the last look.
    bool await_look(std::vector<Watched>& open);

    const PollerOptions options_;
    std::mutex mutex_;  // guards what follows, but for the thread
    std::condition_variable changed_;
    std::vector<Watched> added_;
    bool is_closed_ = false;
    BackgroundThread thread_;  // last: it uses the others
};

}  // namespace pccl
