// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/detect/detect.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "csrc/sys/host.h"
#include "csrc/topo/detect/live.h"
#include "csrc/topo/search/process_plan.h"
#include "csrc/topo/search/search.h"
#include "csrc/topo/xml/machine_xml.h"
#include "tests/cpp/topo/machines.h"
#include "tests/fakes/no_descriptors.h"

namespace pccl::topo {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

namespace fs = std::filesystem;

/// A sysfs in a folder.
class FakeSysfs {
   public:
    FakeSysfs() : root_(fs::path(testing::TempDir()) / "pccl_sysfs") {
        fs::remove_all(root_);
        write("sys/devices/system/node/node0/cpumap", "0000ffff");
        write("sys/devices/system/node/node1/cpumap", "ffff0000");
        write("proc/cpuinfo",
              "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
              "model\t\t: 143\nmodel name\t: Xeon\n");
    }
    ~FakeSysfs() { fs::remove_all(root_); }
    FakeSysfs(const FakeSysfs&) = delete;
    FakeSysfs& operator=(const FakeSysfs&) = delete;

    void write(const std::string& path, const std::string& text) const {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text << "\n";
    }

    /// `chain` is the way from the root complex: "0000:07:01.0/0000:08:00.0".
    void add_device(const std::string& chain, const std::string& device_class, int numa,
                    const std::string& speed = "32.0 GT/s PCIe", int width = 16) const {
        const std::string folder = "sys/devices/pci0000:07/" + chain;
        write(folder + "/class", device_class);
        write(folder + "/vendor", device_class == "0x030200" ? "0x10de" : "0x15b3");
        write(folder + "/device", device_class == "0x030200" ? "0x2330" : "0x1021");
        write(folder + "/numa_node", std::to_string(numa));
        write(folder + "/max_link_speed", speed);
        write(folder + "/max_link_width", std::to_string(width));
        link("sys/bus/pci/devices/" + fs::path(chain).filename().string(), folder);
    }

    void add_rdma(const std::string& name, const std::string& chain,
                  const std::string& rate) const {
        const std::string card = "sys/class/infiniband/" + name;
        write(card + "/node_guid", "9a70:5000:03ae:6d94");
        write(card + "/ports/1/rate", rate);
        write(card + "/ports/1/state", "4: ACTIVE");
        link(card + "/device", "sys/devices/pci0000:07/" + chain);
    }

    void add_ethernet(const std::string& name, const std::string& chain, int speed) const {
        write("sys/class/net/" + name + "/speed", std::to_string(speed));
        write("sys/class/net/" + name + "/operstate", "up");
        link("sys/class/net/" + name + "/device", "sys/devices/pci0000:07/" + chain);
    }

    [[nodiscard]] sys::Sysfs sysfs() const { return sys::Sysfs(root_.string()); }

   private:
    void link(const std::string& from, const std::string& to) const {
        fs::create_directories((root_ / from).parent_path());
        fs::create_directory_symlink(root_ / to, root_ / from);
    }

    fs::path root_;
};

const char* const kSwitch = "0000:07:01.0/0000:08:00.0";
const char* const kGpu = "0000:07:01.0/0000:08:00.0/0000:09:00.0/0000:0a:00.0";
const char* const kNic = "0000:07:01.0/0000:08:00.0/0000:09:01.0/0000:0b:00.0";

void add_h100(const FakeSysfs& machine) {
    machine.add_device("0000:07:01.0", "0x060400", 1);
    machine.add_device(kSwitch, "0x060400", 1);
    machine.add_device(std::string(kSwitch) + "/0000:09:00.0", "0x060400", 1);
    machine.add_device(std::string(kSwitch) + "/0000:09:01.0", "0x060400", 1, "16.0 GT/s PCIe");
    machine.add_device(kGpu, "0x030200", 1);
    machine.add_device(kNic, "0x020700", 1);
    machine.add_rdma("mlx5_0", kNic, "400 Gb/sec (4X NDR)");
    machine.add_device("0000:07:02.0", "0x020000", 1);
    machine.add_ethernet("eth0", "0000:07:02.0", 10000);
}

const std::vector<sys::NvmlGpu> kGpus{
    {.index = 0,
     .bus_id = "0000:0a:00.0",
     .sm = 90,
     .max_link_generation = 5,
     .max_link_width = 16,
     .links = std::vector<sys::NvmlLink>(18, {.target = {}, .end = sys::NvLinkEnd::kSwitch})}};

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

TEST(DetectTest, SaysWhatNvmlKnowsOfChipsFabricAndPeers) {
    const FakeSysfs fake;
    add_h100(fake);
    std::vector<sys::NvmlGpu> gpus = kGpus;
    gpus[0].c2c = {.count = 5, .megabytes = 44712};
    gpus[0].fabric = {
        .state = sys::NvmlFabric::State::kReady, .error = 1, .cluster = "ab", .clique = 3};
    gpus.push_back({.index = 1, .bus_id = "0000:1a:00.0", .sm = 90, .cannot_read = {0}});
    gpus[0].cannot_read = {1};
    Warnings warnings;
    const Machine machine = observe(fake.sysfs(), &gpus, warnings);
    EXPECT_THAT(names_of(warnings), ElementsAre("fabric_failed", "no_peer_access"));
    EXPECT_EQ(warnings[1].subject, "gpu 0 and gpu 1 and 1 more");
    EXPECT_FALSE(has_peer_access(gpus));
    gpus[0].fabric.state = sys::NvmlFabric::State::kStarting;
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

TEST(DetectTest, WithoutNvmlAGpuIsUndescribed) {
    const FakeSysfs fake;
    add_h100(fake);
    Warnings warnings;
    const Topology topology = *Topology::make(observe(fake.sysfs(), nullptr, warnings), {});
    EXPECT_THAT(names_of(topology.warnings()), ElementsAre("undescribed_gpu"));
    EXPECT_EQ(topology.graph().node(topology.graph().gpus()[0]).sm, 90) << "by its device id";
}

TEST(DetectTest, AFileCountsMoreThanTheKernel) {
    const FakeSysfs fake;
    add_h100(fake);
    Warnings warnings;
    const Machine live = observe(fake.sysfs(), &kGpus, warnings);
    Machine file = *parse_machine_xml(
        "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:0a:00.0\" link_width=\"8\"/>"
        "</cpu></system>",
        "t.xml", Source::kUserFile, warnings);
    enrich(file, live);
    const PciDevice& device = file.cpus[0].devices[0];
    EXPECT_EQ(*device.link_width, 8);
    EXPECT_EQ(device.link_width.source(), Source::kUserFile);
    EXPECT_EQ(*device.link_speed, "32.0 GT/s PCIe");
    EXPECT_EQ(device.link_speed.source(), Source::kNvml);
    EXPECT_EQ(device.gpus.at(0).sm.value_or(0), 90);
    EXPECT_EQ(*file.cpus[0].vendor, "GenuineIntel");
}

TEST(DetectTest, ChecksTheSurroundings) {
    const FakeSysfs fake;
    add_h100(fake);
    fake.write("sys/class/iommu/dmar0/x", "");
    std::string config(0x110, '\0');
    config[0x100] = 0x0D;  // ACS, the only extended capability
    config[0x106] = 0x04;  // redirects requests
    fake.write("sys/devices/pci0000:07/" + std::string(kSwitch) + "/config", config);
    Warnings warnings;
    const Machine machine = observe(fake.sysfs(), &kGpus, warnings);
    check_surroundings(fake.sysfs(), machine, warnings);
    EXPECT_THAT(names_of(warnings), ElementsAre("acs_on", "iommu_on"));
    EXPECT_EQ(warnings[0].subject, "0000:08:00.0");
}

TEST(DetectTest, KnowsTheProcessorOfMachinesWithManyCores) {
    const FakeSysfs fake;
    fake.write("proc/cpuinfo",
               "vendor_id\t: AuthenticAMD\nmodel\t\t: 17\n" + std::string(1U << 20U, 'x'));
    EXPECT_EQ(fake.sysfs().cpu().vendor, "AuthenticAMD");
    EXPECT_EQ(fake.sysfs().cpu().model, 17);
}

TEST(DetectTest, SaysThatItWasShortOfDescriptors) {
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

TEST(DetectTest, UnderstandsThisMachine) {
    const auto topology = detect({});
    ASSERT_TRUE(topology.is_ok()) << topology.status().to_string();
    EXPECT_FALSE(topology->graph().cpus().empty());
    for (const Node& node : topology->graph().nodes()) EXPECT_FALSE(node.name.empty());
    const auto again = Topology::parse(topology->to_xml(), "detected", {});
    ASSERT_TRUE(again.is_ok()) << again.status().to_string();
    EXPECT_TRUE(again->machine() == topology->machine());
}

TEST(HwlocXmlTest, ReadsRealMachines) {
    struct Expected {
        const char* file;
        std::size_t gpus, nets, cpus;
    };
    for (const Expected& expected : {Expected{"hwloc/c5n.18xl.hwloc.xml", 0, 1, 2},
                                     {"hwloc/g5.48xl.hwloc.xml", 8, 1, 2},
                                     {"hwloc/p4d.24xl.hwloc.xml", 8, 4, 2},
                                     {"hwloc/p5.48xl.hwloc.xml", 8, 32, 2}}) {
        const Topology topology = load(expected.file, {.assume = {.nvlinks = 12}});
        EXPECT_EQ(topology.graph().gpus().size(), expected.gpus) << expected.file;
        EXPECT_EQ(topology.graph().nets().size(), expected.nets) << expected.file;
        EXPECT_EQ(topology.graph().cpus().size(), expected.cpus) << expected.file;
        EXPECT_THAT(names_of(topology.warnings()), Not(Contains("unknown_sm")));
    }
}

TEST(HwlocXmlTest, FindsTheSwitchesOfAP5) {
    const Topology p5 =
        load("hwloc/p5.48xl.hwloc.xml", {.assume = {.nvlinks = 18, .net_speed = 100000}});
    const Graph& graph = p5.graph();
    int near = 0;
    for (const int net : graph.nets())
        if (p5.paths().path(graph.gpus()[0], net).type <= PathType::kPxb) ++near;
    EXPECT_EQ(near, 4) << "of 32 ports, 4 are beside each GPU";
    EXPECT_GE(search(p5, {.nodes = 2})->bandwidth, 8 * 4 * 12.0 * 0.9);
}

/// Of one port that does RDMA, one that does not, and a GPU.
std::string hwloc_xml(const std::string& version, const std::string& network,
                      const std::string& rdma, const std::string& gpu) {
    const auto device = [](const std::string& bus_id, const std::string& type,
                           const std::string& name, const std::string& number) {
        return "<object type=\"PCIDev\" pci_busid=\"" + bus_id + "\" pci_type=\"" + type +
               "\"><object type=\"OSDev\" name=\"" + name + "\" osdev_type=\"" + number +
               "\"/></object>";
    };
    return "<topology version=\"" + version +
           "\"><object type=\"Machine\"><object type=\"NUMANode\" os_index=\"0\" nodeset=\"0x1\" "
           "cpuset=\"0xf\"/><object type=\"Bridge\" bridge_type=\"0-1\" nodeset=\"0x1\">" +
           device("0000:01:00.0", "0200 [8086:1533] [8086:0001] 03 00", "eth0", network) +
           device("0000:02:00.0", "0207 [15b3:101b] [15b3:0007] 00 00", "mlx5_0", rdma) +
           device("0000:03:00.0", "0302 [10de:2330] [10de:16c1] a1 00", "nvml0", gpu) +
           "</object></object></topology>";
}

TEST(HwlocXmlTest, ReadsVersionThreeWhoseTypesAreBits) {
    const auto second = Topology::parse(hwloc_xml("2.0", "2", "3", "1"), "h.xml", {});
    const auto third = Topology::parse(hwloc_xml("3.0", "16", "48", "12"), "h.xml", {});
    ASSERT_TRUE(second.is_ok()) << second.status().to_string();
    ASSERT_TRUE(third.is_ok()) << third.status().to_string();
    EXPECT_EQ(third->to_xml(), second->to_xml());
    EXPECT_EQ(third->graph().gpus().size(), 1U);
    EXPECT_THAT(third->to_xml(), HasSubstr("name=\"mlx5_0\""));
}

TEST(HwlocXmlTest, RefusesWhatItCannotRead) {
    const auto refused = [](const char* text) {
        return Topology::parse(text, "h.xml", {}).status().message();
    };
    EXPECT_EQ(refused("<topology>\n<object type=\"Machine\"/></topology>"),
              "h.xml:1: <topology> has no version, as hwloc 1 wrote it; versions 2 and 3 are read: "
              "lstopo of hwloc 2 converts it (lstopo --input old.xml new.xml)");
    EXPECT_EQ(refused("<topology version=\"4.0\"/>"),
              "h.xml:1: <topology> has version=\"4.0\"; versions 2 and 3 are read: "
              "lstopo --export-xml-flags v2 writes the former");
    EXPECT_EQ(
        refused("<topology version=\"2.0\">\n<object type=\"PCIDev\" pci_busid=\"1\"/></topology>"),
        "h.xml:2: <object> has pci_busid=\"1\", which must be a PCI bus id such as 0000:0d:00.0");
}

}  // namespace
}  // namespace pccl::topo
