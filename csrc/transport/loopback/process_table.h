// Which processes a loopback fabric has, and where its control planes find them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/loopback/process.h"

namespace pccl::transport::loopback {

/// Safe from every thread.
class ProcessTable {
   public:
    /// The next one; they count from 0.
    Result<std::shared_ptr<Process>> add(Waiter& waiter, const FaultPlan& faults);
    [[nodiscard]] ControlAddress address_of(const Process& process) const;
    /// kUnavailable for an address that is not of this table.
    [[nodiscard]] Result<std::shared_ptr<Process>> find(const ControlAddress& address);
    /// Null when there is no such process.
    [[nodiscard]] std::shared_ptr<Process> at(int index);
    /// For messages.
    [[nodiscard]] std::string place_of(const Process& process) const;

   private:
    [[nodiscard]] std::string name() const;

    std::mutex mutex_;
    std::vector<std::shared_ptr<Process>> processes_;
};

}  // namespace pccl::transport::loopback
