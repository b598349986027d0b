// SPDX-License-Identifier: Apache-2.0

// Named memory that all ranks of a group share.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/bindings/seconds.h"
#include "csrc/comm/communicator.h"

namespace pccl::bindings {

/// One workspace, until it is released. The parts that it has returned remain valid.
class PyWorkspace {
   public:
    PyWorkspace(pybind11::object communicator, std::string name, std::size_t bytes);

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] pybind11::array local() const;
    [[nodiscard]] pybind11::array peer(Rank rank) const;
    void release();
    [[nodiscard]] std::string described() const;

   private:
    [[nodiscard]] comm::CommunicatorImpl& communicator() const;

    pybind11::object communicator_;
    std::string name_;
    std::size_t bytes_;
    bool is_released_ = false;
};

/// The workspaces of a communicator.
class PyMemory {
   public:
    explicit PyMemory(pybind11::object communicator);

    /// Allocates a workspace together with all other ranks. Returns a PyWorkspace for "cpu", a
    /// PyGpuWorkspace for "cuda" or "cuda:N".
    [[nodiscard]] pybind11::object allocate(const std::string& name, std::size_t bytes,
                                            const std::string& device,
                                            OptionalSeconds timeout) const;
    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] std::string described() const;

   private:
    [[nodiscard]] comm::CommunicatorImpl& communicator() const;

    pybind11::object communicator_;
};

}  // namespace pccl::bindings
