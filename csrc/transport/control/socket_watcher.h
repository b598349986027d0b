#pragma once

#include "csrc/base/status.h"

namespace pccl::transport {

/// What ends this process's sleeps when a socket has news.
class SocketWatcher {
   public:
    /// Edge-triggered, for input and output, in every thread. Closing the descriptor ends the
    /// watch.
    virtual Status watch(int fd) = 0;
    virtual void unwatch(int fd) = 0;

   protected:
    ~SocketWatcher() = default;
};

}  // namespace pccl::transport
