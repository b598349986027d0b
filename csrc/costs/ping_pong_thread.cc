// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/ping_pong_thread.h"

#include <sys/resource.h>

namespace pccl::costs {

PingPongThread::PingPongThread() : thread_("pccl-costs", [this] { serve(); }) {}

PingPongThread::~PingPongThread() { is_over_.store(true); }

void PingPongThread::serve() {
    for (;;) {
        spin_until([this] { return task_.load() != nullptr || is_over_.load(); });
        if (is_over_.load()) return;
        (*task_.load())();
        task_.store(nullptr);
    }
}

void PingPongThread::end() {
    spin_until([this] { return task_.load() == nullptr; });
}

void PingPongThread::run(const Task& task) {
    begin(task);
    end();
}

Status PingPongThread::run_on(const sys::CoreSet& cores) {
    Status done;
    run([&] { done = sys::run_on(cores); });
    return done;
}

long PingPongThread::interruptions() {
    long count = 0;
    run([&] { count = interruptions_of_this_thread(); });
    return count;
}

long interruptions_of_this_thread() {
    rusage usage{};
    return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace pccl::costs
