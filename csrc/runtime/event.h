// SPDX-License-Identifier: Apache-2.0

// Handle of an operation in flight.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/runtime/timing.h"

namespace pccl::runtime {

class Operation;

/// Copyable handle; all copies refer to one operation, which may outlive its communicator's handle.
class PCCL_API Event {
   public:
    Event() = default;
    explicit Event(std::shared_ptr<Operation> operation);

    [[nodiscard]] bool is_done() const;
    /// Waits until this rank's links have accepted all data that it sends. The deadline of the
    /// operation itself still applies.
    Status flush() const;
    /// Makes progress until the operation is done, and returns its outcome. Returns kTimeout after
    /// `deadline`; the operation continues then.
    [[nodiscard]] Status wait(Deadline deadline = Deadline::never()) const;
    /// Returns the outcome; ok while the operation runs.
    [[nodiscard]] Status status() const;
    [[nodiscard]] Timing record() const;
    /// Returns the sender, for receives; kNoRank until done.
    [[nodiscard]] Rank source() const;
    /// Calls `callback` once the operation is done: immediately on this thread if it is done
    /// already, otherwise on the thread that finishes it. No lock of the library is held.
    void on_done(std::function<void(const Status&)> callback) const;

   private:
    std::shared_ptr<Operation> operation_;
};

}  // namespace pccl::runtime
