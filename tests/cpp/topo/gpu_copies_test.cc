// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/detect/gpu_copies.h"

#include <gmock/gmock.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/topo/topology.h"
#include "tests/fakes/fake_cuda.h"
#include "tests/fakes/places.h"

namespace pccl::topo {
namespace {

using ::testing::SizeIs;

std::shared_ptr<fakes::FakeGpus> gpus(int count) {
    auto gpus = std::make_shared<fakes::FakeGpus>();
    gpus->count = count;
    return gpus;
}

TEST(GpuCopiesTest, AnyTwoAreMeasuredBothWaysAndNoMemoryIsKept) {
    fakes::FakeCudaDriver driver(gpus(2));
    const auto copies = measure_gpu_copies(driver);
    ASSERT_TRUE(copies.is_ok()) << copies.status().to_string();
    std::set<std::pair<std::string, std::string>> pairs;
    for (const GpuCopy& copy : *copies) {
        pairs.emplace(copy.from, copy.to);
        EXPECT_NE(copy.from, copy.to);
        EXPECT_GT(copy.times.latency, 0);
        EXPECT_GT(copy.times.bandwidth, 0);
    }
    EXPECT_THAT(pairs, SizeIs(2));
    EXPECT_TRUE(pairs.contains({"0000:01:00.0", "0000:00:00.0"}));
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

Topology load_nccl(const std::string& file) {
    return *Topology::load(fakes::in_tests("data/topology/nccl/") + file, {});
}

std::string line(const Topology& machine, const char* from, const char* to, const char* times) {
    const Graph& graph = machine.graph();
    return concat("gpus ", graph.node(graph.find(from)).label, " ",
                  graph.node(graph.find(to)).label, " ", times, "\n");
}

TEST(GpuCopiesTest, WhatWasMeasuredCountsInPaths) {
    const Topology declared = load_nccl("dgx1v_cubemesh.xml");
    const auto calibration = Calibration::parse(line(declared, "gpu0", "gpu1", "9 17"));
    const Topology measured = declared.with(*calibration);
    const auto rate = [](const Topology& machine, const char* from, const char* to) {
        const Graph& graph = machine.graph();
        return machine.paths().path(graph.find(from), graph.find(to)).bandwidth;
    };
    EXPECT_EQ(rate(measured, "gpu0", "gpu1"), 17);
    EXPECT_EQ(rate(measured, "gpu1", "gpu0"), rate(declared, "gpu1", "gpu0")) << "the other way";
    EXPECT_EQ(rate(measured, "gpu0", "gpu2"), rate(declared, "gpu0", "gpu2"));
    EXPECT_EQ(measured.digest(), declared.digest()) << "by which measurements are found";
    EXPECT_EQ(measured.with(Warnings()).digest(), declared.digest());
    EXPECT_EQ(measured.to_xml(), declared.to_xml());
}

TEST(GpuCopiesTest, ALinkToTheSwitchesCarriesTheFastestOfItsCopies) {
    const Topology declared = load_nccl("h200x8_vm.xml");
    const auto calibration = Calibration::parse(line(declared, "gpu0", "gpu1", "9 350") +
                                                line(declared, "gpu0", "gpu2", "9 390"));
    const Topology measured = declared.with(*calibration);
    const Graph& graph = measured.graph();
    int changed = 0;
    for (const Link& link : graph.links()) {
        if (!link.is_measured) continue;
        ++changed;
        const std::string from = graph.node(link.from).name;
        EXPECT_EQ(link.bandwidth, from == "gpu0" || graph.node(link.to).name == "gpu2" ? 390 : 350);
    }
    EXPECT_EQ(changed, 3) << "out of gpu0, into gpu1 and into gpu2";
}

}  // namespace
}  // namespace pccl::topo
