// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/device_ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/fakes/memory_store.h"

namespace pccl::fakes {
namespace {

// Where others take the cores, longer than a test may want to wait for a launch.
constexpr std::chrono::minutes kToMeet{2};

}  // namespace

kernels::GpuPath path_under_test() {
    const char* const environment = std::getenv("PCCL_TEST_GPU_PATH");
    const std::string_view wanted = environment == nullptr ? "" : environment;
    if (wanted == "host") return kernels::GpuPath::kHost;
    return wanted == "pcie" ? kernels::GpuPath::kPcie : kernels::GpuPath::kPeer;
}

void use_path_under_test(device::DeviceGroupImplOptions& options, FakeCudaDriver& driver) {
    if (path_under_test() == kernels::GpuPath::kHost) options.peer_access = false;
    if (path_under_test() == kernels::GpuPath::kPcie) driver.have_no_nvlinks();
}

void run_device_ranks(const DeviceRanksOptions& options,
                      const std::function<void(DeviceRank&)>& body) {
    const auto gpus = std::make_shared<FakeGpus>();
#if defined(__SANITIZE_THREAD__)
    gpus->has_one_address_space = true;
#endif
    const auto store = std::make_shared<MemoryStore>();
    std::barrier together(options.size);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < options.size; ++rank) {
        threads.emplace_back([&, rank] {
            FakeCudaDriver driver(gpus);
            device::DeviceGroupImplOptions own{.rank = rank,
                                               .size = options.size,
                                               .store = store,
                                               .name = options.name,
                                               .device = rank,
                                               .timeout = kToMeet,
                                               .driver = &driver,
                                               .preferences = options.preferences};
            if (options.prepare) {
                options.prepare(driver);
            } else {
                use_path_under_test(own, driver);
            }
            auto group = device::DeviceGroupImpl::create(own);
            ASSERT_TRUE(group.is_ok()) << group.status().to_string();
            if (options.size > 1 && !options.prepare) {
                EXPECT_EQ((*group)->path(), path_under_test());
            }
            (*group)->set_timeout(options.timeout);
            DeviceRank member{**group, driver, together};
            body(member);
            together.arrive_and_wait();
            group->reset();
            EXPECT_EQ(driver.open_mappings(), 0);
            EXPECT_EQ(driver.open_files(), 0);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace pccl::fakes
