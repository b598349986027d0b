// SPDX-License-Identifier: Apache-2.0

// Runs one function as every rank of a group of GPUs: threads of this process, each with a GPU in
// host memory.
#pragma once

#include <barrier>
#include <chrono>
#include <functional>
#include <string>

#include "csrc/device/device_group.h"
#include "tests/fakes/fake_cuda.h"

namespace pccl::fakes {

struct DeviceRank {
    device::DeviceGroupImpl& group;
    FakeCudaDriver& driver;
    std::barrier<>& together;
};

struct DeviceRanksOptions {
    int size = 2;
    std::chrono::milliseconds timeout{20'000};  // once they have met
    std::string name{};
    device::Preferences preferences{};
    // Changes each rank's driver instead of path_under_test().
    std::function<void(FakeCudaDriver&)> prepare{};
};

/// Where kernels meet in groups of tests: in the memory of GPUs with NVLinks, or as the
/// environment requests by PCCL_TEST_GPU_PATH=host or pcie. All tests of kernels run over NVLink
/// and through the host, those of collectives and messages also over PCIe.
[[nodiscard]] kernels::GpuPath path_under_test();

/// Lets a group of a test take path_under_test().
void use_path_under_test(device::DeviceGroupImplOptions& options, FakeCudaDriver& driver);

/// Fails the running test where a group cannot be made; returns when all ranks are through.
void run_device_ranks(const DeviceRanksOptions& options,
                      const std::function<void(DeviceRank&)>& body);

}  // namespace pccl::fakes
