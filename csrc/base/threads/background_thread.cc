// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/threads/background_thread.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <utility>

namespace pccl {

bool is_main_thread() { return ::gettid() == ::getpid(); }

BackgroundThread::BackgroundThread(const std::string& name, std::function<void()> body) {
    // A new thread inherits the mask: signals stay with the application's threads.
    sigset_t every;
    sigset_t before;
    sigfillset(&every);
    ::pthread_sigmask(SIG_SETMASK, &every, &before);
    thread_ = std::thread(std::move(body));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

BackgroundThread::~BackgroundThread() {
    if (!thread_.joinable()) return;
    if (!made_in_.is_child()) {
        if (thread_.get_id() == std::this_thread::get_id()) {
            thread_.detach();
        } else {
            thread_.join();
        }
    } else {
        new (&thread_) std::thread;  // the handle names a thread of the parent
    }
}

void BackgroundThread::release() {
    if (!made_in_.is_child()) thread_.detach();
}

}  // namespace pccl
