// The handle of an operation in flight.
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

/// Copyable; all copies speak of one operation, which outlives its communicator's handle if it
/// must.
class PCCL_API Event {
   public:
    Event() = default;
    explicit Event(std::shared_ptr<Operation> operation);

    [[nodiscard]] bool is_done() const;
    /// Waits until everything this rank has to send is handed to its links. The deadline of the
    /// operation itself still holds.
    Status flush() const;
    /// Waits until the operation is done and returns how it ended; helps it along meanwhile.
    /// kTimeout after `deadline` leaves it running.
    [[nodiscard]] Status wait(Deadline deadline = Deadline::never()) const;
    /// ok while it runs.
    [[nodiscard]] Status status() const;
    [[nodiscard]] Timing record() const;
    /// For receives: who sent. kNoRank until done.
    [[nodiscard]] Rank source() const;
    /// Runs `callback` once when done: at once on this thread if it is, else on the thread that
    /// finishes it, with no lock of the library held.
    void on_done(std::function<void(const Status&)> callback) const;

   private:
    std::shared_ptr<Operation> operation_;
};

}  // namespace pccl::runtime
