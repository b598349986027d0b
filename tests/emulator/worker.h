// SPDX-License-Identifier: Apache-2.0

// A thread of the host that runs one piece of work after the other. Each launch needs hundreds, and
// starting and ending them took longer than what they ran.
#pragma once

#include <functional>
#include <semaphore>
#include <thread>
#include <utility>

namespace pccl::emulator {

/// start() and await_end() take turns. What came before the one is seen by the work, and what the
/// work did by what follows the other, as when a thread is started and joined.
class Worker {
   public:
    Worker() : thread_([this] { serve(); }) {}
    ~Worker() {
        start(nullptr);
        thread_.join();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void start(std::function<void()> work) {
        work_ = std::move(work);
        begin_.release();
    }
    void await_end() { end_.acquire(); }

   private:
    void serve() {
        for (begin_.acquire(); work_; begin_.acquire()) {
            work_();
            end_.release();
        }
    }

    std::function<void()> work_;
    std::binary_semaphore begin_{0};
    std::binary_semaphore end_{0};
    std::thread thread_;
};

}  // namespace pccl::emulator
