// SPDX-License-Identifier: Apache-2.0

// A thread that polls links: a plug-in moves bytes inside of its calls alone, and signals nothing.
//
// A program's own calls poll as well. The thread matters while all threads of the program sleep, or
// compute: it polls often while bytes move, and once in a millisecond while nothing does.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/threads/background_thread.h"

namespace pccl::transport::netplugin {

enum class Activity { kIdle, kWaiting, kMoved };

/// Something to poll.
class Polled {
   public:
    virtual ~Polled() = default;
    /// Makes progress; does not block, unless the plug-in does.
    virtual Activity poll() = 0;
    /// Returns whether it needs no more polls.
    [[nodiscard]] virtual bool is_over() = 0;
    /// Returns whether the end of the thread waits for is_over(), a moment.
    [[nodiscard]] virtual bool is_awaited() const { return false; }
};

class Progress {
   public:
    Progress();
    /// Polls what is awaited for a second at most. A thread that does not return from a plug-in is
    /// left behind.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Polls `polled` until it is over, or removed.
    void add(std::shared_ptr<Polled> polled);
    void remove(const Polled& polled);

   private:
    struct State {
        void run();
        /// Returns what to poll after a pause; nullopt: the thread ends.
        std::optional<std::vector<std::shared_ptr<Polled>>> next(Duration interval);
        void drop(const Polled& polled);
        [[nodiscard]] bool awaits_any() const;

        std::mutex mutex;
        std::condition_variable changed;
        std::vector<std::shared_ptr<Polled>> all;  // guarded by mutex, as the next members
        bool is_closed = false;
        bool has_ended = false;
        Deadline last = Deadline::never();
    };
    const std::shared_ptr<State> state_ = std::make_shared<State>();
    BackgroundThread thread_;
};

}  // namespace pccl::transport::netplugin
