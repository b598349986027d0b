// The Python handle of an asynchronous operation over buffers.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/bindings/buffer.h"
#include "csrc/bindings/seconds.h"
#include "csrc/runtime/event.h"

namespace pccl::bindings {

using BuffersPtr = std::unique_ptr<Buffers>;

class HeldBuffers;

/// Buffers of operations that are done, waiting for somebody who holds the GIL to release them: the
/// thread that finishes an operation must not take it.
class Discarded {
   public:
    /// Takes over what is still held; on any thread.
    void put(HeldBuffers& held);
    /// Needs the GIL. What is released may run code of the user, which may call the library.
    void clear();

   private:
    std::atomic<bool> has_any_{false};
    std::mutex mutex_;
    std::vector<BuffersPtr> buffers_;
};

/// The buffers of one operation, until somebody takes them.
class HeldBuffers {
   public:
    HeldBuffers(BuffersPtr buffers, std::shared_ptr<Discarded> discarded)
        : buffers_(buffers.release()), discarded_(std::move(discarded)) {}
    ~HeldBuffers() { static_cast<void>(take()); }
    HeldBuffers(const HeldBuffers&) = delete;
    HeldBuffers& operator=(const HeldBuffers&) = delete;

    [[nodiscard]] BuffersPtr take() { return BuffersPtr(buffers_.exchange(nullptr)); }
    /// Lets them go, wherever they are, once the operation is done. Needs the GIL.
    void release() {
        if (take() == nullptr) discarded_->clear();
    }
    /// The operation is done; on any thread.
    void discard() { discarded_->put(*this); }

   private:
    std::atomic<Buffers*> buffers_;
    const std::shared_ptr<Discarded> discarded_;
};

/// Keeps `buffers` until `event` is done, and then until somebody releases them: at the latest the
/// next call that clears `discarded`.
std::shared_ptr<HeldBuffers> hold_until_done(const runtime::Event& event, BuffersPtr buffers,
                                             std::shared_ptr<Discarded> discarded);

/// Waits without the GIL, in slices, so that Ctrl-C works; returns how the operation ended, or
/// kTimeout after `seconds`.
[[nodiscard]] Status wait_for(const runtime::Event& event, std::optional<double> seconds);

/// Lets the buffers go as soon as it is seen that the operation is done.
class PyEvent {
   public:
    PyEvent(runtime::Event event, std::shared_ptr<HeldBuffers> held)
        : event_(std::move(event)), held_(std::move(held)) {}

    /// Throws how the operation ended, or TimeoutError after `seconds`.
    void wait(OptionalSeconds seconds) const;
    void flush() const;
    [[nodiscard]] bool is_done() const;
    [[nodiscard]] const runtime::Event& operator*() const { return event_; }

   private:
    const runtime::Event event_;
    const std::shared_ptr<HeldBuffers> held_;
};

}  // namespace pccl::bindings
