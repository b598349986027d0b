// The one owner of threads in the library, and what it knows of those of the process.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "csrc/base/export.h"
#include "csrc/base/fork.h"

namespace pccl {

/// Whether this is the thread that the process started with, which alone runs Python's signal
/// handlers.
[[nodiscard]] PCCL_API bool is_main_thread();

/// Runs `body` on a thread that is named, takes no signals, and is joined by the destructor;
/// whoever owns it makes `body` return first. Left alone in a child of fork(), where the thread
/// does not exist, and let go when `body` itself destroys it.
class PCCL_API BackgroundThread {
   public:
    BackgroundThread(const std::string& name, std::function<void()> body);
    ~BackgroundThread();
    BackgroundThread(const BackgroundThread&) = delete;
    BackgroundThread& operator=(const BackgroundThread&) = delete;

    /// Nobody joins the thread any more: `body` must own all that it uses.
    void release();

   private:
    ForkMark made_in_;
    std::thread thread_;
};

}  // namespace pccl
