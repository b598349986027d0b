// SPDX-License-Identifier: Apache-2.0

// Owner of all threads of the library, and a check for the main thread.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include <pccl/export.h>
#include "csrc/base/fork.h"

namespace pccl {

/// Returns whether this is the thread that the process started with. Only that thread runs Python's
/// signal handlers.
[[nodiscard]] PCCL_API bool is_main_thread();

/// Named thread that runs `body`, takes no signals, and is joined by the destructor; its owner
/// makes `body` return first. A child of fork() ignores it, because the thread does not exist
/// there. It detaches the thread if `body` itself destroys it.
class PCCL_API BackgroundThread {
   public:
    BackgroundThread(const std::string& name, std::function<void()> body);
    ~BackgroundThread();
    BackgroundThread(const BackgroundThread&) = delete;
    BackgroundThread& operator=(const BackgroundThread&) = delete;

    /// Detaches the thread: `body` must own everything that it uses.
    void release();

   private:
    ForkMark made_in_;
    std::thread thread_;
};

}  // namespace pccl
