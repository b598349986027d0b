// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "csrc/sys/net_plugin/calls.h"
#include "csrc/sys/net_plugin/library.h"
#include "csrc/sys/net_plugin/plugin.h"
#include "tests/fakes/places.h"
#include "tests/fakes/strict_plugin.h"

namespace pccl::sys::net_plugin {
namespace {

using fakes::strict_net_plugin_of;
using fakes::StrictPlugin;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kLimit = std::chrono::seconds(60);

/// Returns another name of a file: a name is started once in a process.
std::string fresh_name(int version) {
    static int names = 0;
    std::string name = strict_net_plugin_of(version);
    const std::size_t at = name.rfind('/') + 1;
    for (int i = 0; i <= names; ++i) name.insert(at, "./");
    ++names;
    return name;
}

/// Returns why a plug-in with these rules cannot be started.
Status failure_of(const std::string& rules, Duration limit = kLimit) {
    const StrictPlugin strict(strict_net_plugin_of(8));
    strict.set(rules);
    const Status status = start_plugin(fresh_name(8), limit).status();
    strict.set("");
    return status;
}

TEST(NetPluginLibrary, IsSearchedAsNcclSearches) {
    EXPECT_THAT(library_names("aws-ofi"), ElementsAre("aws-ofi", "libnccl-net-aws-ofi.so"));
    EXPECT_THAT(library_names("libnccl-net.so"), ElementsAre("libnccl-net.so"));
    EXPECT_THAT(library_names("/opt/plugin"), ElementsAre("/opt/plugin"));
    EXPECT_THAT(library_names("libother"), ElementsAre("libother", "libnccl-net-libother.so"));
}

TEST(NetPluginLibrary, OfAllVersionsGivesTheNewest) {
    const auto library = open_library(strict_net_plugin_of(0));
    ASSERT_TRUE(library.is_ok()) << library.status().to_string();
    EXPECT_EQ(library->symbol, "ncclNetPlugin_v12");
    EXPECT_EQ(library->table->name(), "PcclStrict");
}

TEST(NetPluginLibrary, MissingOrOtherFilesAreNamed) {
    const auto missing = open_library("certainly-none");
    EXPECT_THAT(missing.status().message(), HasSubstr("libnccl-net-certainly-none.so"));
    const auto other = open_library(fakes::fake_nvml());
    EXPECT_THAT(other.status().message(), HasSubstr("exports no ncclNetPlugin_v<version>"));
    EXPECT_THAT(other.status().message(), HasSubstr(fakes::fake_nvml()));
}

TEST(NetPlugin, EachVersionStartsAndHasItsDevices) {
    for (int version = 6; version <= 12; ++version) {
        StrictPlugin(strict_net_plugin_of(version)).set("");
        const auto plugin = start_plugin(fresh_name(version), kLimit);
        ASSERT_TRUE(plugin.is_ok()) << plugin.status().to_string();
        EXPECT_EQ((*plugin)->version(), version);
        EXPECT_EQ((*plugin)->max_requests(), version == 6 ? 8 : 32);
        ASSERT_EQ((*plugin)->devices().size(), 2U);
        const DeviceProperties& second = (*plugin)->devices()[1];
        EXPECT_EQ(second.name, "strict1");
        EXPECT_EQ(second.guid, 0x1001U);
        EXPECT_EQ(second.megabits, 100'000);
        EXPECT_EQ(second.port, 2);
        EXPECT_EQ(second.max_recvs, 8);
        EXPECT_EQ(second.max_bytes,
                  version < 9 ? abi::net_plugin::kMaxIntBytes : abi::net_plugin::kMaxBytes);
        EXPECT_EQ(second.rail, version < 12 ? -1 : 1);
    }
}

/// Starts the plug-in of a version by rules, and returns its devices.
std::vector<DeviceProperties> devices_of(int version, const std::string& rules) {
    const StrictPlugin strict(strict_net_plugin_of(version));
    strict.set(rules);
    const auto plugin = start_plugin(fresh_name(version), kLimit);
    EXPECT_TRUE(plugin.is_ok()) << plugin.status().to_string();
    return plugin.is_ok() ? (*plugin)->devices() : std::vector<DeviceProperties>();
}

TEST(NetPlugin, PortsOfOneCardAreJoinedWhereThePluginCanDoSo) {
    for (int version = 6; version <= 12; ++version) {
        const auto devices = devices_of(version, "devices=4,ports=2");
        ASSERT_EQ(devices.size(), version < 9 ? 4U : 2U) << version;
        if (version < 9) continue;
        EXPECT_EQ(devices[0].name, "joined");
        EXPECT_EQ(devices[0].number, 4);
        EXPECT_EQ(devices[1].number, 5);
        EXPECT_EQ(devices[1].guid, 0x1001U);
        EXPECT_EQ(devices[1].megabits, 200'000);
    }
}

TEST(NetPlugin, NoMorePortsAreJoinedThanAVersionCanJoin) {
    EXPECT_EQ(devices_of(11, "devices=6,ports=6").size(), 2U);  // of 4 and of 2
    EXPECT_EQ(devices_of(12, "devices=6,ports=6").size(), 1U);
    EXPECT_EQ(devices_of(11, "devices=5,ports=5").back().number, 4);  // it is alone
}

TEST(NetPlugin, PortsThatCannotBeJoinedAreUsedOneByOne) {
    const auto devices = devices_of(12, "devices=4,ports=2,fail=makeVDevice");
    ASSERT_EQ(devices.size(), 4U);
    EXPECT_EQ(devices[3].name, "strict3");
}

TEST(NetPlugin, TrafficIsAnnouncedWhereItGrows) {
    const StrictPlugin strict(strict_net_plugin_of(11));
    strict.set("");
    Plugin& plugin = *start_plugin(fresh_name(11), kLimit).value();
    const auto slot = plugin.slot("a test");
    EXPECT_TRUE(plugin.expect(*slot, {.peers = 3, .flows_per_peer = 2}).is_ok());
    EXPECT_TRUE(plugin.expect(*slot, {.peers = 2, .flows_per_peer = 2}).is_ok());
    EXPECT_EQ(strict.calls("setNetAttr"), 1);
    EXPECT_TRUE(plugin.expect(*slot, {.peers = 7, .flows_per_peer = 2}).is_ok());
    EXPECT_EQ(strict.calls("setNetAttr"), 2);
    strict.set("fail=setNetAttr");
    EXPECT_THAT(plugin.expect(*slot, {.peers = 9, .flows_per_peer = 2}).message(),
                HasSubstr("ncclNetPlugin_v11: setNetAttr fails: system error (2)"));
    strict.set("");
}

TEST(NetPlugin, AFailureWhileStartingIsOneLineWithFileSymbolAndCall) {
    struct Case {
        const char* rules;
        const char* text;
    };
    constexpr std::array kCases{
        Case{"fail=init", "ncclNetPlugin_v8: init fails: system error (2)"},
        Case{"fail=devices", "ncclNetPlugin_v8: devices fails: system error (2)"},
        Case{"devices=0", "ncclNetPlugin_v8: devices returns 0 devices"},
        Case{"devices=-3", "ncclNetPlugin_v8: devices returns -3 devices"},
        Case{"fail=getProperties", "getProperties of device 0 fails: system error (2)"},
        Case{"type=1", "device 0 (strict0) cannot be used: its receives need a kernel (UNPACK)"},
        Case{"type=77", "cannot be used: its type is 77"},
        Case{"pointers=2", "cannot be used: it does not move host memory"},
        Case{"crash=init", "init crashes (signal 11)"},
        Case{"crash=getProperties", "getProperties crashes (signal 11)"},
        Case{"exit=devices", "devices ends the process (status 3)"},
    };
    for (const Case& each : kCases) {
        const Status status = failure_of(each.rules);
        EXPECT_EQ(status.code(), StatusCode::kUnavailable) << each.rules;
        EXPECT_THAT(status.message(), HasSubstr(each.text)) << each.rules;
        EXPECT_THAT(status.message(), HasSubstr("libnccl-net-strict_v8.so")) << each.rules;
        EXPECT_EQ(status.message().find('\n'), std::string::npos) << each.rules;
    }
}

TEST(NetPlugin, OneThatBlocksWhileStartingIsGivenUp) {
    const Status status = failure_of("block=init", std::chrono::milliseconds(300));
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("init has not returned for 300 ms"));
}

class ListeningTest : public testing::Test {
   protected:
    void SetUp() override {
        strict_.set("");
        auto started = start_plugin(strict_net_plugin_of(12), kLimit);
        ASSERT_TRUE(started.is_ok()) << started.status().to_string();
        plugin_ = *started;
        slot_ = plugin_->slot("a test");
    }
    void TearDown() override { strict_.set(""); }

    const StrictPlugin strict_{strict_net_plugin_of(12)};
    Plugin* plugin_ = nullptr;
    std::shared_ptr<CallSlot> slot_;
    Handle handle_{};
};

TEST_F(ListeningTest, AHandleThatIsTooLongIsAnError) {
    strict_.set("overrun=1");
    EXPECT_THAT(plugin_->listen(*slot_, 0, handle_).status().message(),
                HasSubstr("listen writes more than the 128 bytes of a handle"));
}

TEST_F(ListeningTest, SuccessWithoutACommunicatorIsAnError) {
    strict_.set("no_comm=1");
    EXPECT_THAT(plugin_->listen(*slot_, 0, handle_).status().message(),
                HasSubstr("ncclNetPlugin_v12: listen returns no communicator and no error"));
}

TEST_F(ListeningTest, AHandleOfOtherBytesIsRefused) {
    handle_.fill(std::byte{7});
    EXPECT_THAT(plugin_->connect(*slot_, 0, handle_).status().message(),
                HasSubstr("connect fails: invalid argument (4)"));
}

TEST(CallWatch, NamesACallThatDoesNotReturnOnce) {
    CallWatch watch;
    const auto slot = watch.add("a link with rank 3");
    const TimePoint start = system_clock().now();
    const auto after = [&](int seconds) {
        return watch.overdue(start + std::chrono::seconds(seconds), std::chrono::seconds(10));
    };
    slot->enter("test");
    EXPECT_TRUE(after(0).empty());
    EXPECT_TRUE(after(9).empty());
    EXPECT_THAT(after(10), ElementsAre("test for a link with rank 3"));
    EXPECT_TRUE(slot->is_stuck());
    EXPECT_TRUE(after(30).empty());
    slot->leave();
    EXPECT_TRUE(after(40).empty());
    EXPECT_FALSE(slot->is_stuck());
}

TEST(CallWatch, DoesNotTakeManyShortCallsForALongOne) {
    CallWatch watch;
    const auto slot = watch.add("a link");
    const TimePoint start = system_clock().now();
    for (int second = 0; second < 60; ++second) {
        slot->enter("test");
        EXPECT_TRUE(
            watch.overdue(start + std::chrono::seconds(second), std::chrono::seconds(5)).empty());
        slot->leave();
    }
}

}  // namespace
}  // namespace pccl::sys::net_plugin
