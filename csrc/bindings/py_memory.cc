// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/py_memory.h"

#include <cstdint>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/py_communicator.h"
#include "csrc/bindings/py_gpu_workspace.h"
#include "csrc/bindings/seconds.h"

namespace pccl::bindings {

namespace py = pybind11;

namespace {

/// Returns bytes that stay mapped until the array and its views are gone.
py::array array_over(comm::MappedMemory held) {
    auto* const data = reinterpret_cast<std::uint8_t*>(held.memory.data());
    const auto bytes = static_cast<py::ssize_t>(held.memory.size());
    using Holder = std::shared_ptr<const void>;
    const py::capsule owner(std::make_unique<Holder>(std::move(held.holder)).release(),
                            [](void* memory) { delete static_cast<Holder*>(memory); });
    return py::array_t<std::uint8_t>({bytes}, data, owner);
}

}  // namespace

PyWorkspace::PyWorkspace(py::object communicator, std::string name, std::size_t bytes)
    : communicator_(std::move(communicator)), name_(std::move(name)), bytes_(bytes) {}

comm::CommunicatorImpl& PyWorkspace::communicator() const {
    return *communicator_.cast<PyCommunicator&>();
}

py::array PyWorkspace::local() const { return peer(communicator().rank()); }

py::array PyWorkspace::peer(Rank rank) const {
    if (is_released_)
        throw_status(Status::invalid_argument(
            concat("workspace \"", name_, "\" was released; allocate it again")));
    return array_over(value_or_throw(communicator().memory().hold(name_, rank)));
}

void PyWorkspace::release() {
    if (std::exchange(is_released_, true)) return;
    throw_unless_ok(communicator().memory().release(name_));
}

std::string PyWorkspace::described() const {
    return concat("<pccl.Workspace \"", name_, "\": ", bytes_, " bytes a rank",
                  is_released_ ? ", released>" : ">");
}

PyMemory::PyMemory(py::object communicator) : communicator_(std::move(communicator)) {}

comm::CommunicatorImpl& PyMemory::communicator() const {
    return *communicator_.cast<PyCommunicator&>();
}

py::object PyMemory::allocate(const std::string& name, std::size_t bytes, const std::string& device,
                              OptionalSeconds timeout) const {
    comm::CommunicatorImpl& comm = communicator();
    if (device.starts_with("cuda"))
        return py::cast(std::make_unique<PyGpuWorkspace>(comm, name, bytes, device, timeout));
    if (device != "cpu")
        throw_status(Status::unsupported(
            concat("no workspace on device '", device, "': \"cpu\", \"cuda\" or \"cuda:N\" work")));
    const auto limit = timeout_of(timeout);
    static_cast<void>(released([&] { return comm.allocate_on_all_ranks(name, bytes, limit); }));
    return py::cast(std::make_unique<PyWorkspace>(communicator_, name, bytes));
}

std::vector<std::string> PyMemory::names() const {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : communicator().memory().sizes()) names.push_back(name);
    return names;
}

std::string PyMemory::described() const {
    std::string all;
    for (const auto& [name, bytes] : communicator().memory().sizes())
        all += concat(all.empty() ? " " : ", ", name, " (", bytes, " bytes a rank)");
    return concat("<pccl.Memory of \"", communicator().name(),
                  "\":", all.empty() ? " no workspace" : all, ">");
}

}  // namespace pccl::bindings
