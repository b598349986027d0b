// SPDX-License-Identifier: Apache-2.0

// Table of the processes of a loopback fabric, in which its control planes find them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/transport/control/control_plane.h"
#include "tests/fakes/loopback/process.h"

namespace pccl::transport::loopback {

/// Process table. Thread-safe.
class ProcessTable {
   public:
    /// Adds the next process; numbers start at 0.
    Result<std::shared_ptr<Process>> add(Waiter& waiter, const FaultPlan& faults);
    [[nodiscard]] ControlAddress address_of(const Process& process) const;
    /// Returns a process; kUnavailable for an address of another table.
    [[nodiscard]] Result<std::shared_ptr<Process>> find(const ControlAddress& address);
    /// Returns null when there is no such process.
    [[nodiscard]] std::shared_ptr<Process> at(int index);
    /// Returns the place of a process, for messages.
    [[nodiscard]] std::string place_of(const Process& process) const;

   private:
    [[nodiscard]] std::string name() const;

    std::mutex mutex_;
    std::vector<std::shared_ptr<Process>> processes_;
};

}  // namespace pccl::transport::loopback
