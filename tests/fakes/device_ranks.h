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
};

/// Where kernels meet in groups of tests: in the GPUs' memory, or in that of the host where the
/// environment has PCCL_TEST_GPU_PATH=host. All tests of kernels run once for each.
[[nodiscard]] kernels::GpuPath path_under_test();

/// Lets a group of a test take path_under_test().
void use_path_under_test(device::DeviceGroupImplOptions& options);

/// Fails the running test where a group cannot be made; returns when all ranks are through.
void run_device_ranks(const DeviceRanksOptions& options,
                      const std::function<void(DeviceRank&)>& body);

}  // namespace pccl::fakes
