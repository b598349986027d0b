// SPDX-License-Identifier: Apache-2.0

// Python handle of an asynchronous operation over buffers.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <pccl/collective.h>
#include "csrc/bindings/buffer.h"
#include "csrc/bindings/seconds.h"

namespace pccl::bindings {

using BuffersPtr = std::unique_ptr<Buffers>;

class HeldBuffers;

/// Buffers of finished operations, until a thread with the GIL releases them. The thread that
/// finishes an operation must not take the GIL.
class DeferredReleases {
   public:
    /// Takes over the buffers that are still held. Thread-safe.
    void put(HeldBuffers& held);
    /// Releases the buffers. Requires the GIL. This may run users' code, which may call the
    /// library.
    void clear();

   private:
    std::atomic<bool> has_any_{false};
    std::mutex mutex_;
    std::vector<BuffersPtr> buffers_;
};

/// Buffers of one operation, until one thread takes them.
class HeldBuffers {
   public:
    HeldBuffers(BuffersPtr buffers, std::shared_ptr<DeferredReleases> deferred)
        : buffers_(buffers.release()), deferred_(std::move(deferred)) {}
    ~HeldBuffers() { static_cast<void>(take()); }
    HeldBuffers(const HeldBuffers&) = delete;
    HeldBuffers& operator=(const HeldBuffers&) = delete;

    [[nodiscard]] BuffersPtr take() { return BuffersPtr(buffers_.exchange(nullptr)); }
    /// Releases the buffers, wherever they are, once the operation is done. Requires the GIL.
    void release() {
        if (take() == nullptr) deferred_->clear();
    }
    /// Passes the buffers on once the operation is done. Thread-safe.
    void release_later() { deferred_->put(*this); }

   private:
    std::atomic<Buffers*> buffers_;
    const std::shared_ptr<DeferredReleases> deferred_;
};

/// Keeps `buffers` until `event` is done, and then until they are released, at the latest by the
/// next call that clears `deferred`.
std::shared_ptr<HeldBuffers> hold_until_done(const Event& event, BuffersPtr buffers,
                                             std::shared_ptr<DeferredReleases> deferred);

/// Waits without the GIL, in slices, so that Ctrl-C works. Returns the operation's outcome, or
/// kTimeout after `seconds`.
[[nodiscard]] Status wait_for(const Event& event, std::optional<double> seconds);

/// Handle that releases the buffers as soon as it finds the operation done.
class PyEvent {
   public:
    PyEvent(Event event, std::shared_ptr<HeldBuffers> held)
        : event_(std::move(event)), held_(std::move(held)) {}

    /// Throws the operation's error, or TimeoutError after `seconds`.
    void wait(OptionalSeconds seconds) const;
    void flush() const;
    [[nodiscard]] bool is_done() const;
    [[nodiscard]] const Event& operator*() const { return event_; }

   private:
    const Event event_;
    const std::shared_ptr<HeldBuffers> held_;
};

}  // namespace pccl::bindings
