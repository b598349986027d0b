// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/job/job.h"

#include <gmock/gmock.h>

#include "tests/cpp/topo/job_hosts.h"
#include "tests/cpp/topo/machines.h"

namespace pccl::topo {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const char* const kH100 = "nccl/H100-topology-kubernetes.xml";

TEST(JobTest, ANarrowWayIsAllThatANetworkHas) {
    HostTopology other = host("b", 8, kH100);
    const double declared = JobTopology::make({host("a", 0, kH100), other})->network_bandwidth(1);
    other.way = way_to("a");
    other.way->byte = 1 / (declared * 1e9) * 10;
    EXPECT_EQ(JobTopology::make({host("a", 0, kH100), other})->network_bandwidth(1), declared)
        << "its ends may be what holds a connection up";
    other.way->is_narrow = true;
    const JobTopology narrow = *JobTopology::make({host("a", 0, kH100), other});
    EXPECT_NEAR(narrow.network_bandwidth(1), declared / 10, 1e-5 * (declared / 10));
    EXPECT_EQ(narrow.network_provenance(1), Provenance::kMeasured);
    other.calibration = *Calibration::parse("network " + other.network.interface + "x a 9 99\n");
    EXPECT_NEAR(JobTopology::make({host("a", 0, kH100), other})->network_bandwidth(1),
                declared / 10, 1e-5 * (declared / 10));
}

TEST(JobTest, IsTheSameInWhateverOrderHostsCome) {
    const HostTopology a = host("a", 0, kH100);
    const HostTopology b = host("b", 8, kH100);
    const JobTopology one = *JobTopology::make({a, b});
    const JobTopology other = *JobTopology::make({b, a});
    EXPECT_EQ(one.digest(), other.digest());
    EXPECT_EQ(other.hosts()[0].name, "a");
    EXPECT_TRUE(one.is_uniform());
    EXPECT_THAT(one.warnings(), IsEmpty());
    EXPECT_THAT(one.rails(), SizeIs(16));
    EXPECT_THAT(one.rails(), Each(Field(&RailOfJob::bandwidth, 25)));
    EXPECT_EQ(one.host_of(9), 1);
    EXPECT_EQ(one.host_of(16), -1);
    const auto plans = one.search({});
    EXPECT_NEAR(plans->at(0).bandwidth, 384, 1e-6);
    EXPECT_EQ(plans->at(0).nodes, 2);
    EXPECT_EQ(digest_of(*plans), digest_of(*other.search({})));
}

TEST(JobTest, UnlikeHostsKeepTheirChannels) {
    const JobTopology job =
        *JobTopology::make({host("fast", 0, kH100), host("slow", 8, "nccl/dgx1v_cubemesh.xml")});
    EXPECT_FALSE(job.is_uniform());
    EXPECT_THAT(names_of(job.warnings()), ElementsAre("nic_sets_differ"));
    EXPECT_THAT(job.warnings()[0].message,
                HasSubstr("has 4 ports of 12.5 GB/s or more, and fast has 16 ports of 25"));
    EXPECT_THAT(job.rails(), SizeIs(4));
    EXPECT_EQ(job.rails()[0].bandwidth, 12.5);
    const auto plans = *job.search({});
    EXPECT_NEAR(plans.at(0).bandwidth, 384, 1e-6);
    EXPECT_NEAR(plans.at(1).bandwidth, 48, 1e-6);
}

TEST(JobTest, HostsByTheThousandDoNotMultiplyTheirWarnings) {
    const HostTopology one = host("a", 0, kH100);
    const Topology talkative = one.topology.with(Warnings(1000, Warning{"w", "s", "m", "r"}));
    std::vector<HostTopology> hosts;
    for (Rank rank = 0; rank < 1000; ++rank)
        hosts.push_back({.name = "a", .ranks = {rank}, .topology = talkative});
    const auto job = JobTopology::make(std::move(hosts));
    ASSERT_TRUE(job.is_ok());
    EXPECT_THAT(job->warnings(), SizeIs(JobTopology::kMostWarnings));
}

TEST(JobTest, NamesWhoDisagrees) {
    EXPECT_TRUE(check_agreement({"a", "a", "a"}).is_ok());
    const Status status = check_agreement({"a", "a", "b"});
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_EQ(status.peer(), 2);
    EXPECT_THAT(status.message(), HasSubstr("rank 2 found other channels than rank 0"));
}

TEST(JobTest, ARankHasOneHost) {
    const auto twice = JobTopology::make({host("a", 0, kH100), host("b", 7, kH100)});
    EXPECT_EQ(twice.status().message(), "rank 7 is on two hosts, a and b");
    EXPECT_FALSE(JobTopology::make({}).is_ok());
}

}  // namespace
}  // namespace pccl::topo
