#include "csrc/topo/gpu_copies.h"

#include <gmock/gmock.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/fakes/fake_cuda.h"

namespace pccl::topo {
namespace {

using ::testing::SizeIs;

std::shared_ptr<fakes::FakeGpus> gpus(int count) {
    auto gpus = std::make_shared<fakes::FakeGpus>();
    gpus->count = count;
    return gpus;
}

TEST(GpuCopiesTest, AnyTwoAreMeasuredBothWaysAndNoMemoryIsKept) {
    fakes::FakeCudaDriver driver(gpus(3));
    const auto copies = measure_gpu_copies(driver);
    ASSERT_TRUE(copies.is_ok()) << copies.status().to_string();
    std::set<std::pair<std::string, std::string>> pairs;
    for (const GpuCopy& copy : *copies) {
        pairs.emplace(copy.from, copy.to);
        EXPECT_NE(copy.from, copy.to);
        EXPECT_GT(copy.times.latency, 0);
        EXPECT_GT(copy.times.bandwidth, 0);
    }
    EXPECT_THAT(pairs, SizeIs(6));
    EXPECT_TRUE(pairs.contains({"0000:02:00.0", "0000:00:00.0"}));
    EXPECT_EQ(driver.open_mappings(), 0);
}

TEST(GpuCopiesTest, GpusThatDoNotReachEachOtherAreLeftOut) {
    fakes::FakeCudaDriver driver(gpus(2));
    driver.fail("map", Status::unsupported("no peer access"));
    const auto copies = measure_gpu_copies(driver);
    ASSERT_TRUE(copies.is_ok()) << copies.status().to_string();
    EXPECT_THAT(*copies, SizeIs(0));
}

TEST(GpuCopiesTest, AFailureIsAnError) {
    fakes::FakeCudaDriver driver(gpus(2));
    driver.fail("wait", Status::internal("an illegal address"));
    EXPECT_EQ(measure_gpu_copies(driver).status().code(), StatusCode::kInternal);
    EXPECT_EQ(driver.open_mappings(), 0);
}

}  // namespace
}  // namespace pccl::topo
