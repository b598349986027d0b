// The flight recorder as JSON: on demand, in a file when an operation fails, and on SIGUSR1.
#pragma once

#include <memory>
#include <string>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::runtime {

/// {"version": 1, "host", "pid", "wall_ms", "steady_ns", "reason", "groups": [...], "entries":
/// [...], "sessions": {...}}; times of entries are on the steady clock. docs/failure.md has the
/// fields.
[[nodiscard]] PCCL_API std::string flight_record_json(const std::string& reason);

/// Writes it to PCCL_FLIGHT_DIR/flight-<host>-<pid>.json, whole or not at all; nothing where the
/// variable is not set. Logs what goes wrong.
PCCL_API void dump_flight_record(const std::string& reason);

/// Whether that can be written: a process begins with it, for when a call has failed it is too
/// late.
[[nodiscard]] PCCL_API Status check_flight_folder();

/// While it lives, SIGUSR1 asks for a dump, where PCCL_FLIGHT_DIR is set and the program does
/// nothing with the signal itself. One in a process.
class FlightSignal {
   public:
    /// Null where there is nothing to do.
    static std::unique_ptr<FlightSignal> install();
    ~FlightSignal();
    FlightSignal(const FlightSignal&) = delete;
    FlightSignal& operator=(const FlightSignal&) = delete;

    /// Readable after a signal.
    [[nodiscard]] int fd() const { return event_.get(); }
    /// Dumps if there was one.
    void serve();

   private:
    explicit FlightSignal(UniqueFd event) : event_(std::move(event)) {}
    UniqueFd event_;
};

}  // namespace pccl::runtime
