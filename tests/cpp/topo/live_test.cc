// SPDX-License-Identifier: Apache-2.0

// GPUs, switches and network ports as sysfs and NVML show them.
#include "csrc/topo/detect/live.h"

#include <gmock/gmock.h>

#include "csrc/base/text/text.h"
#include "csrc/sys/host.h"
#include "csrc/topo/detect/detect.h"
#include "tests/cpp/topo/fake_sysfs.h"
#include "tests/cpp/topo/machines.h"
#include "tests/fakes/no_descriptors.h"

namespace pccl::topo {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Net> nets_of(Machine machine) {
    std::vector<Net> nets;
    const auto add = [&](const std::vector<Nic>& nics) {
        for (const Nic& nic : nics) nets.insert(nets.end(), nic.nets.begin(), nic.nets.end());
    };
    for (const Cpu& cpu : machine.cpus) add(cpu.nics);
    visit_devices(machine, [&](Cpu& /*cpu*/, PciDevice& device) { add(device.nics); });
    return nets;
}

TEST(DetectTest, SeesSwitchesGpusAndRdmaPorts) {
    const FakeSysfs fake;
    add_h100(fake);
    Warnings warnings;
    const Machine machine = observe(fake.sysfs(), &kGpus, warnings);
    EXPECT_THAT(warnings, IsEmpty());
    const Topology topology = *Topology::make(machine, {});
    EXPECT_THAT(topology.warnings(), IsEmpty());
    const Graph& graph = topology.graph();
    ASSERT_THAT(graph.gpus(), SizeIs(1));
    ASSERT_THAT(graph.nets(), SizeIs(1)) << "plain Ethernet beside RDMA is left out";
    EXPECT_THAT(graph.cpus(), SizeIs(2));
    EXPECT_EQ(graph.node(graph.nets()[0]).label, "mlx5_0");
    const Path path = topology.paths().path(graph.gpus()[0], graph.nets()[0]);
    EXPECT_EQ(path.type, PathType::kPix) << "one switch, although it shows as three bridges";
    EXPECT_EQ(path.bandwidth, 24) << "the port above the NIC is of the fourth generation";
    EXPECT_EQ(topology.paths().path(graph.gpus()[0], graph.find("NUMA 1")).type, PathType::kPhb);
    EXPECT_EQ(machine.cpus[1].devices[0].children[0].gpus[0].nvlinks[0].count.value_or(0), 18);
    EXPECT_EQ(machine.cpus[0].model.value_or(0), 143);
}

TEST(DetectTest, NamesGpusThatNvmlDoesNotShow) {
    const FakeSysfs fake;
    add_h100(fake);
    const std::vector<sys::NvmlGpu> none;
    Warnings warnings;
    const Machine machine = observe(fake.sysfs(), &none, warnings);
    EXPECT_THAT(names_of(warnings), ElementsAre("hidden_gpus"));
    EXPECT_EQ(warnings[0].subject, "0000:0a:00.0");
    EXPECT_THAT(Topology::make(machine, {})->graph().gpus(), IsEmpty());
}

TEST(DetectTest, HasTheChipsFabricAndPeersOfNvml) {
    const FakeSysfs fake;
    add_h100(fake);
    std::vector<sys::NvmlGpu> gpus = kGpus;
    gpus[0].c2c = {.count = 5, .megabytes = 44712};
    gpus[0].fabric = {
        .state = sys::NvmlFabric::FabricState::kReady, .error = 1, .cluster = "ab", .clique = 3};
    gpus.push_back({.index = 1, .bus_id = "0000:1a:00.0", .sm = 90, .cannot_read = {0}});
    gpus[0].cannot_read = {1};
    Warnings warnings;
    const Machine machine = observe(fake.sysfs(), &gpus, warnings);
    EXPECT_THAT(names_of(warnings), ElementsAre("fabric_failed", "no_peer_access"));
    EXPECT_EQ(warnings[1].subject, "gpu 0 and gpu 1 and 1 more");
    EXPECT_FALSE(has_peer_access(gpus));
    gpus[0].fabric.state = sys::NvmlFabric::FabricState::kStarting;
    Warnings later;
    static_cast<void>(observe(fake.sysfs(), &gpus, later));
    EXPECT_EQ(later[0].name, "fabric_starting");
    const Gpu& gpu = machine.cpus[1].devices[0].children[0].gpus[0];
    EXPECT_EQ(*gpu.c2c->bandwidth, 44712);
    EXPECT_THAT(gpu.extras, Contains(std::pair<std::string, std::string>("fabric_cluster", "ab")));
    gpus[0].cannot_read.clear();
    EXPECT_TRUE(has_peer_access(gpus));
}

TEST(DetectTest, VirtualInterfacesCountWhereThereAreNoOther) {
    const FakeSysfs fake;
    const auto add = [&](const std::string& name, const std::string& state) {
        fake.write("sys/class/net/" + name + "/type", name == "lo" ? "772" : "1");
        fake.write("sys/class/net/" + name + "/operstate", state);
        fake.write("sys/class/net/" + name + "/speed", "25000");
    };
    add("lo", "up");
    add("veth0", "up");
    add("veth1", "down");
    add("docker0", "up");
    fake.write("sys/class/net/docker0/bridge/stp_state", "0");
    Warnings warnings;
    const Topology alone = *Topology::make(observe(fake.sysfs(), nullptr, warnings), {});
    ASSERT_THAT(alone.graph().nets(), SizeIs(1));
    EXPECT_EQ(alone.graph().node(alone.graph().nets()[0]).label, "veth0");
    add_h100(fake);
    const Topology with_card = *Topology::make(observe(fake.sysfs(), &kGpus, warnings), {});
    ASSERT_THAT(with_card.graph().nets(), SizeIs(1));
    EXPECT_EQ(with_card.graph().node(with_card.graph().nets()[0]).label, "mlx5_0");
}

TEST(DetectTest, EmulatedRdmaDevicesReplaceTheirInterfaces) {
    const FakeSysfs fake;
    const auto names = [&] {
        Warnings warnings;
        std::vector<std::string> found;
        for (const Net& net : nets_of(observe(fake.sysfs(), nullptr, warnings)))
            found.push_back(*net.name);
        return found;
    };
    fake.write("sys/class/net/dummy0/type", "1");
    fake.write("sys/class/net/dummy0/operstate", "up");
    fake.add_soft_rdma("rxe0", "dummy0", "2.5 Gb/sec (1X SDR)");
    ASSERT_THAT(names(), ElementsAre("rxe0"));
    Warnings warnings;
    const Net alone = nets_of(observe(fake.sysfs(), nullptr, warnings)).front();
    EXPECT_EQ(alone.speed.value_or(0), 2500);
    EXPECT_EQ(alone.gdr.value_or(1), 0);
    EXPECT_EQ(alone.guid.value_or(""), "0x505400fffe123456");

    fake.add_device("0000:07:03.0", "0x020000", 1);
    fake.add_ethernet("eth1", "0000:07:03.0", 10000);
    fake.add_ethernet("eth2", "0000:07:03.0", 10000);
    fake.add_soft_rdma("siw0", "eth1", "10 Gb/sec (4X SDR)");
    EXPECT_THAT(names(), ElementsAre("siw0", "eth2")) << "on the card of its interface";

    add_h100(fake);
    EXPECT_THAT(names(), ElementsAre("mlx5_0")) << "hardware comes before emulation";
}

TEST(DetectTest, AccessToMemoryOfGpusIsProbed) {
    const FakeSysfs fake;
    add_h100(fake, HasPeerMemory::kNo);
    std::vector<std::string> probed;
    bool takes = false;
    const DmabufProbe probe = [&](const std::string& device) {
        probed.push_back(device);
        return takes;
    };
    const auto access = [&](const std::vector<sys::NvmlGpu>* gpus, const DmabufProbe& by) {
        Warnings warnings;
        const Net net = nets_of(observe(fake.sysfs(), gpus, warnings, by)).front();
        return concat(net.gdr.value_or(-1), " ", to_string(net.gdr.source()));
    };
    EXPECT_EQ(access(&kGpus, {}), "0 sysfs") << "nothing shows it";
    EXPECT_EQ(access(&kGpus, probe), "0 verbs");
    takes = true;
    EXPECT_EQ(access(&kGpus, probe), "1 verbs");
    EXPECT_THAT(probed, ElementsAre("mlx5_0", "mlx5_0"));
    EXPECT_EQ(access(nullptr, probe), "0 sysfs") << "without GPUs no device is opened";
    EXPECT_THAT(probed, SizeIs(2));
    fake.add_peer_memory();
    EXPECT_EQ(access(&kGpus, {}), "1 sysfs");
}

TEST(DetectTest, WithoutNvmlAGpuIsUndescribed) {
    const FakeSysfs fake;
    add_h100(fake);
    Warnings warnings;
    const Topology topology = *Topology::make(observe(fake.sysfs(), nullptr, warnings), {});
    EXPECT_THAT(names_of(topology.warnings()), ElementsAre("undescribed_gpu"));
    EXPECT_EQ(topology.graph().node(topology.graph().gpus()[0]).sm, 90) << "by its device id";
}

TEST(DetectTest, HasTheProcessorOfMachinesWithManyCores) {
    const FakeSysfs fake;
    fake.write("proc/cpuinfo",
               "vendor_id\t: AuthenticAMD\nmodel\t\t: 17\n" + std::string(1U << 20U, 'x'));
    EXPECT_EQ(fake.sysfs().cpu().vendor, "AuthenticAMD");
    EXPECT_EQ(fake.sysfs().cpu().model, 17);
}

TEST(DetectTest, ReportsAShortageOfDescriptors) {
    const FakeSysfs fake;
    add_h100(fake);
    const sys::Sysfs sysfs = fake.sysfs();
    static_cast<void>(sysfs.ports());
    EXPECT_TRUE(sysfs.shortage().is_ok()) << "what is not there is not missed";
    const fakes::NoDescriptors none;
    EXPECT_THAT(sysfs.ports(), IsEmpty());
    EXPECT_EQ(sysfs.shortage().code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(sysfs.shortage().message(), HasSubstr("/sys/class/infiniband"));
    EXPECT_EQ(detect({}).status().code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(sys::host_identity().status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace pccl::topo
