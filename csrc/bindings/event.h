// The Python handle of an asynchronous operation over buffers.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "csrc/bindings/buffer.h"
#include "csrc/comm/event.h"

namespace pccl::bindings {

/// Buffers of operations that are done, waiting for somebody who holds the GIL to release them: the
/// thread that finishes an operation must not take it.
class Discarded {
   public:
    void put(Buffers buffers);
    /// Needs the GIL.
    void clear();

   private:
    std::mutex mutex_;
    std::vector<Buffers> buffers_;
};

/// Keeps `buffers` until `event` is done, then gives them to `discarded`.
void hold_until_done(const comm::Event& event, Buffers buffers,
                     std::shared_ptr<Discarded> discarded);

/// Waits without the GIL, in slices, so that Ctrl-C works. Throws how the operation ended, or
/// CollectiveTimeoutError after `seconds`.
void wait_for(const comm::Event& event, std::optional<double> seconds);

}  // namespace pccl::bindings
