// SPDX-License-Identifier: Apache-2.0

// Named GPU memory that all ranks of a group share, for users' own kernels.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "csrc/bindings/dlpack.h"
#include "csrc/comm/communicator.h"
#include "csrc/device/device_workspace.h"

namespace pccl::bindings {

/// One rank's part, as bytes, by the protocols for GPU arrays: DLPack and __cuda_array_interface__
/// (version 3). It keeps the whole workspace mapped.
class PyGpuMemory {
   public:
    PyGpuMemory(std::shared_ptr<device::DeviceWorkspace> workspace, std::uint64_t address);

    [[nodiscard]] std::uint64_t address() const { return address_; }
    [[nodiscard]] std::size_t bytes() const { return workspace_->bytes(); }
    [[nodiscard]] pybind11::dict interface() const;
    /// Returns a capsule named "dltensor". Consumers are ordered after the writers by the stream.
    [[nodiscard]] pybind11::capsule tensor() const;
    [[nodiscard]] pybind11::tuple dlpack_device() const;
    [[nodiscard]] std::string described() const;

   private:
    std::shared_ptr<device::DeviceWorkspace> workspace_;
    std::uint64_t address_;
};

/// One workspace, until it is released. The parts that it has returned remain valid.
class PyGpuWorkspace {
   public:
    /// Makes a workspace together with all other ranks of `communicator`. `device` is "cuda" or
    /// "cuda:N".
    PyGpuWorkspace(comm::CommunicatorImpl& communicator, std::string name, std::size_t bytes,
                   const std::string& device, std::optional<double> timeout);

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::string device() const;
    [[nodiscard]] PyGpuMemory local() const { return peer(rank_); }
    [[nodiscard]] PyGpuMemory peer(Rank rank) const;
    void release() { workspace_.reset(); }
    [[nodiscard]] std::string described() const;

   private:
    std::string name_;
    std::size_t bytes_;
    Rank rank_;
    int device_;
    std::shared_ptr<device::DeviceWorkspace> workspace_;  // null: released
};

}  // namespace pccl::bindings
