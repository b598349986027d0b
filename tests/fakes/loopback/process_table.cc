// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/loopback/process_table.h"

#include <unistd.h>

#include <charconv>

#include "csrc/base/text/text.h"

namespace pccl::transport::loopback {

std::string ProcessTable::name() const {
    return concat("v1;", ::getpid(), ";", reinterpret_cast<std::uintptr_t>(this));
}

std::string ProcessTable::place_of(const Process& process) const {
    return concat(name(), ";", process.index());
}

ControlAddress ProcessTable::address_of(const Process& process) const {
    return {.host = name(), .doors = {std::to_string(process.index())}};
}

Result<std::shared_ptr<Process>> ProcessTable::add(Waiter& waiter, const FaultPlan& faults) {
    const std::lock_guard lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(auto process,
                          Process::create(static_cast<int>(processes_.size()), waiter, faults));
    processes_.push_back(process);
    return process;
}

Result<std::shared_ptr<Process>> ProcessTable::find(const ControlAddress& address) {
    int index = -1;
    if (address.host == name() && !address.doors.empty()) {
        const std::string& door = address.doors.front();
        std::from_chars(door.data(), door.data() + door.size(), index);
    }
    if (auto process = at(index)) return process;
    return Status::unavailable("the peer is not in this loopback fabric");
}

std::shared_ptr<Process> ProcessTable::at(int index) {
    const std::lock_guard lock(mutex_);
    const bool exists = index >= 0 && static_cast<std::size_t>(index) < processes_.size();
    return exists ? processes_[static_cast<std::size_t>(index)] : nullptr;
}

}  // namespace pccl::transport::loopback
