// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "csrc/sys/verbs/device.h"
#include "tests/fakes/forked_child.h"
#include "tests/fakes/verbs_control.h"

namespace pccl::sys::verbs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

/// Devices of all tests of this program: the fake reads the variable at its first use.
const bool kIsPrepared = [] {
    ::setenv("FAKE_VERBS_DEVICES", "mlx5_0:2,mlx5_1:mtu=1024:speed=hdr,ib0:ib,siw0,rxe0:down", 1);
    return fakes::use_fake_verbs();
}();

std::vector<std::string> names_of(const std::vector<DeviceInfo>& devices) {
    std::vector<std::string> names;
    for (const DeviceInfo& device : devices) names.push_back(device.name);
    return names;
}

DeviceInfo info_of(const char* name) {
    const auto device = Device::open(name);
    EXPECT_TRUE(device.is_ok()) << device.status().to_string();
    return device.is_ok() ? (*device)->info() : DeviceInfo();
}

TEST(VerbsLibraryTest, ItIsOpenedOnceAndShowsItsFile) {
    const auto library = libibverbs();
    ASSERT_TRUE(library.is_ok()) << library.status().to_string();
    EXPECT_EQ(*library, *libibverbs());
    EXPECT_THAT((*library)->path, HasSubstr("fakes/verbs/libibverbs.so.1"));
    EXPECT_NE((*library)->query_gid_ex, nullptr);
    EXPECT_TRUE(prepare_fork(**library).is_ok());
}

TEST(VerbsLibraryDeathTest, ALibraryThatCannotBeUsedIsAnErrorOfItsSetting) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto print = [](const Status& status) {
        std::fputs(status.to_string().c_str(), stderr);
        std::exit(status.code() == StatusCode::kInvalidArgument ? 0 : 1);
    };
    EXPECT_EXIT(
        {
            ::setenv("PCCL_IBVERBS_LIBRARY", "/nowhere/libibverbs.so.1", 1);
            print(libibverbs().status());
        },
        testing::ExitedWithCode(0), "PCCL_IBVERBS_LIBRARY.*/nowhere/libibverbs.so.1");
    EXPECT_EXIT(
        {
            ::setenv("PCCL_IBVERBS_LIBRARY", "libm.so.6", 1);
            print(list_devices().status());
        },
        testing::ExitedWithCode(0), "PCCL_IBVERBS_LIBRARY: libm.so.6 has no function ibv_");
}

TEST(VerbsDeviceTest, AllDevicesAreListed) {
    const auto devices = list_devices();
    ASSERT_TRUE(devices.is_ok()) << devices.status().to_string();
    EXPECT_THAT(names_of(*devices), ElementsAre("mlx5_0", "mlx5_1", "ib0", "siw0", "rxe0"));
}

TEST(VerbsDeviceTest, LimitsAreThoseOfTheLibrary) {
    const auto device = Device::open("mlx5_0").value();
    ibv_device_attr attributes{};
    ASSERT_EQ(device->verbs().query_device(device->context(), &attributes), 0);
    const DeviceInfo& info = device->info();
    EXPECT_EQ(info.max_queue_pairs, attributes.max_qp);
    EXPECT_EQ(info.max_registrations, attributes.max_mr);
    EXPECT_EQ(info.max_completions, attributes.max_cqe);
    EXPECT_EQ(info.max_work_requests, attributes.max_qp_wr);
    EXPECT_EQ(info.max_reads, attributes.max_qp_rd_atom);
    EXPECT_EQ(info.max_read_posts, attributes.max_qp_init_rd_atom);
    EXPECT_EQ(info.max_pieces, attributes.max_sge);
}

TEST(VerbsDeviceTest, PortsHaveTheirStateSpeedAndMtu) {
    const DeviceInfo first = info_of("mlx5_0");
    ASSERT_THAT(first.ports, SizeIs(2));
    EXPECT_TRUE(first.ports[1].is_active);
    EXPECT_TRUE(first.ports[1].is_ethernet);
    EXPECT_EQ(first.ports[1].state, "ACTIVE");
    EXPECT_EQ(first.ports[1].mtu_bytes, 4096U);
    EXPECT_EQ(first.ports[1].gigabits, 100);
    EXPECT_EQ(first.port(2), &first.ports[1]);
    EXPECT_EQ(first.port(3), nullptr);
    EXPECT_EQ(first.port(0), nullptr);
    const DeviceInfo second = info_of("mlx5_1");
    ASSERT_THAT(second.ports, SizeIs(1));
    EXPECT_EQ(second.ports[0].mtu_bytes, 1024U);
    EXPECT_EQ(second.ports[0].gigabits, 200);
    EXPECT_FALSE(info_of("rxe0").ports.at(0).is_active);
    EXPECT_EQ(info_of("rxe0").ports.at(0).state, "DOWN");
}

TEST(VerbsDeviceTest, KindsOfDevicesDiffer) {
    EXPECT_FALSE(info_of("mlx5_0").is_soft);
    EXPECT_FALSE(info_of("mlx5_0").is_iwarp);
    EXPECT_TRUE(info_of("rxe0").is_soft);
    EXPECT_TRUE(info_of("siw0").is_soft);
    EXPECT_TRUE(info_of("siw0").is_iwarp);
}

TEST(VerbsDeviceTest, GidsHaveTypesAndAddresses) {
    const DeviceInfo device = info_of("mlx5_0");
    const std::vector<GidEntry>& gids = device.ports[1].gids;
    ASSERT_FALSE(gids.empty());
    const auto of_type = [&](GidType type, bool is_ipv4) {
        return std::ranges::count_if(gids, [&](const GidEntry& gid) {
            return gid.type == type && gid.is_ipv4() == is_ipv4;
        });
    };
    EXPECT_EQ(of_type(GidType::kRoceV1, true), 1);
    EXPECT_EQ(of_type(GidType::kRoceV2, true), 1);
    EXPECT_EQ(of_type(GidType::kRoceV2, false), 1);
    const auto ipv4 = std::ranges::find_if(gids, &GidEntry::is_ipv4);
    EXPECT_EQ(ipv4->address(), "10.77.0.2");
    for (const GidEntry& gid : gids) EXPECT_NE(gid.is_ipv4(), gid.is_link_local());
    const DeviceInfo infiniband = info_of("ib0");
    for (const GidEntry& gid : infiniband.ports[0].gids) EXPECT_EQ(gid.type, GidType::kInfiniband);
    EXPECT_FALSE(infiniband.ports[0].is_ethernet);
    EXPECT_GT(infiniband.ports[0].lid, 0);
}

TEST(VerbsDeviceTest, AnUnknownDeviceIsNamed) {
    const Status missing = Device::open("mlx9_9").status();
    EXPECT_EQ(missing.code(), StatusCode::kUnavailable);
    EXPECT_THAT(missing.message(), HasSubstr("mlx9_9"));
}

TEST(VerbsDeviceTest, EventsOfPortsHaveTheirNumber) {
    const auto device = Device::open("mlx5_0").value();
    EXPECT_THAT(device->take_events(), IsEmpty()) << "it does not block";
    ASSERT_EQ(PCCL_FAKE_VERBS(set_port)("mlx5_0", 2, 0), 0);
    EXPECT_FALSE(device->query_port(2)->is_active);
    ASSERT_EQ(PCCL_FAKE_VERBS(set_port)("mlx5_0", 2, 1), 0);
    EXPECT_TRUE(device->query_port(2)->is_active);
    ASSERT_EQ(PCCL_FAKE_VERBS(device_fatal)("mlx5_0"), 0);
    const std::vector<AsyncEvent> events = device->take_events();
    ASSERT_THAT(events, SizeIs(3));
    EXPECT_EQ(events[0].type, IBV_EVENT_PORT_ERR);
    EXPECT_EQ(events[0].port, 2);
    EXPECT_THAT(events[0].text, Not(IsEmpty()));
    EXPECT_EQ(events[1].type, IBV_EVENT_PORT_ACTIVE);
    EXPECT_EQ(events[2].type, IBV_EVENT_DEVICE_FATAL);
    EXPECT_EQ(events[2].port, 0) << "it is of no port";
    EXPECT_THAT(device->take_events(), IsEmpty());
}

TEST(VerbsHandleTest, AChildOfForkDestroysNothing) {
    const auto device = Device::open("mlx5_0").value();
    const Libibverbs& library = device->verbs();
    auto domain = std::make_unique<Handle<ibv_pd>>(
        own(library.alloc_pd(device->context()), library.dealloc_pd, "no domain").value());
    fakes::ForkedChild child([&] {
        domain.reset();
        return 7;
    });
    EXPECT_EQ(child.join(), 7);
    std::vector<std::byte> memory(4096);
    ibv_mr* const region =
        library.reg_mr(domain->get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(region, nullptr) << "the domain still exists";
    EXPECT_EQ(library.dereg_mr(region), 0);
}

TEST(VerbsHandleTest, AFailedCallIsTheError) {
    errno = ENOMEM;
    const auto none = own(static_cast<ibv_pd*>(nullptr), static_cast<int (*)(ibv_pd*)>(nullptr),
                          "cannot create it");
    EXPECT_EQ(none.status().code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(none.status().message(), HasSubstr("cannot create it"));
}

TEST(VerbsGidEntryTest, AddressesAreWrittenAsUsual) {
    GidEntry gid;
    gid.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, 7, 1};
    EXPECT_TRUE(gid.is_ipv4());
    EXPECT_FALSE(gid.is_link_local());
    EXPECT_EQ(gid.address(), "192.168.7.1");
    gid.gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 1};
    EXPECT_FALSE(gid.is_ipv4());
    EXPECT_TRUE(gid.is_link_local());
    gid.gid = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    EXPECT_FALSE(gid.is_ipv4());
    EXPECT_FALSE(gid.is_link_local());
    EXPECT_EQ(gid.address(), "fd00::1");
    EXPECT_STREQ(to_string(GidType::kRoceV2), "RoCE v2");
}

}  // namespace
}  // namespace pccl::sys::verbs
