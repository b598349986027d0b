// SPDX-License-Identifier: Apache-2.0

// Output of the flight recorder as JSON: on demand, to a file when an operation fails, and on
// SIGUSR1.
#pragma once

#include <memory>
#include <string>

#include <pccl/status.h>
#include "csrc/base/unique_fd.h"

namespace pccl::runtime {

/// Returns {"version": 1, "host", "pid", "wall_ms", "steady_ns", "reason", "groups": [...],
/// "entries": [...], "sessions": {...}}. Times of entries are on the steady clock.
/// docs/reference/failure.md describes the fields.
[[nodiscard]] PCCL_API std::string flight_record_json(const std::string& reason);

/// Writes the record atomically to PCCL_FLIGHT_DIR/flight-<host>-<pid>.json. Does nothing where the
/// variable is not set. Logs errors.
PCCL_API void dump_flight_record(const std::string& reason);

/// Returns whether the folder is writable. A process checks it at its start, because after a failed
/// call it is too late.
[[nodiscard]] PCCL_API Status check_flight_folder();

/// Handler of SIGUSR1, which requests a dump, while the object lives. It exists only where
/// PCCL_FLIGHT_DIR is set and the program does not handle the signal itself, once per process.
class FlightSignal {
   public:
    /// Returns null where no handler is needed.
    static std::unique_ptr<FlightSignal> install();
    ~FlightSignal();
    FlightSignal(const FlightSignal&) = delete;
    FlightSignal& operator=(const FlightSignal&) = delete;

    /// Returns a descriptor that is readable after a signal.
    [[nodiscard]] int fd() const { return event_.get(); }
    /// Dumps the record if there was a signal.
    void serve();

   private:
    explicit FlightSignal(UniqueFd event) : event_(std::move(event)) {}
    UniqueFd event_;
};

}  // namespace pccl::runtime
