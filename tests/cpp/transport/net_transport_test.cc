// SPDX-License-Identifier: Apache-2.0

// Links over the strict net plug-in that fail while they are opened, or whose calls block.
#include "csrc/transport/netplugin/net_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/fakes/deadlines.h"
#include "tests/fakes/host.h"
#include "tests/fakes/net_member.h"
#include "tests/fakes/strict_plugin.h"

namespace pccl::transport::netplugin {
namespace {

using fakes::test_deadline;
using testing::HasSubstr;

constexpr GroupId kNetGroup{7};
constexpr Secret kNetSecret{8};
constexpr LinkRequest kNetRequest{
    .group = kNetGroup, .source = 1, .destination = 0, .group_size = 2};

/// Process that opens a link to itself.
class NetHost final : public fakes::Host {
   public:
    explicit NetHost(const fakes::MemberMaker& make) : fakes::Host(make) {}

    std::optional<Secret> secret_of(const GroupId& /*group*/) override { return kNetSecret; }
    void accepted(const LinkRequest& /*request*/, std::unique_ptr<RecvLink> link) override {
        links.push_back(std::move(link));
    }
    void refused(std::string_view /*transport_name*/, const Status& why) override {
        refusals.push_back(why);
    }

    std::vector<std::unique_ptr<RecvLink>> links;
    std::vector<Status> refusals;
};

class NetTransportTest : public testing::Test {
   protected:
    void TearDown() override { strict_.set(""); }

    /// Opens a link by rules of the plug-in (tests/fakes/netplugin/rules.h); `limit` is that of its
    /// calls.
    void open(const std::string& rules, std::chrono::milliseconds limit = fakes::kTimeout) {
        strict_.set(rules);
        host_ = std::make_unique<NetHost>([&](Waiter& /*of_host*/) {
            return fakes::net_member(waiter_, {.plugin = fresh_name(), .peer_timeout = limit});
        });
        opening_ = host_->transport().connect(host_->address(), kNetRequest, kNetSecret).value();
    }
    /// Serves until `is_over`, and returns the error of the sender, if it has one.
    Status serve_until(const std::function<bool()>& is_over) {
        Status fault;
        for (const Deadline end = test_deadline(); !end.passed() && !is_over();) {
            host_->serve(std::chrono::milliseconds(1));
            if (!fault.is_ok() || opening_ == nullptr) continue;
            auto opened = opening_->advance();
            fault = opened.status();
            if (opened.is_ok() && *opened != nullptr) sender_ = std::move(*opened);
            if (!fault.is_ok() || sender_ != nullptr) opening_.reset();
        }
        EXPECT_TRUE(is_over());
        return fault;
    }
    /// Sends bytes over the link, and returns those that arrive.
    std::vector<std::byte> carry(const std::vector<std::byte>& out) {
        EXPECT_TRUE(
            serve_until([&] { return sender_ != nullptr && !host_->links.empty(); }).is_ok());
        std::vector<std::byte> in(out.size());
        std::size_t sent = 0;
        std::size_t got = 0;
        for (const Deadline end = test_deadline(); got < in.size() && !end.passed();) {
            sent += sender_->send(0, std::span(out).subspan(sent), Flush::kNow).value();
            got += host_->links.front()->receive(0, std::span(in).subspan(got)).value();
        }
        return in;
    }
    [[nodiscard]] bool is_refused() const { return !host_->refusals.empty(); }

    /// Returns another name of the file: a plug-in starts once, with one limit, by each name.
    static std::string fresh_name() {
        static int names = 0;
        std::string name = fakes::strict_net_plugin_of(12);
        const std::size_t at = name.rfind('/') + 1;
        for (int i = 0; i <= names; ++i) name.insert(at, "./");
        ++names;
        return name;
    }

    const fakes::StrictPlugin strict_{fakes::strict_net_plugin_of(12)};
    std::shared_ptr<Waiter> waiter_ = Waiter::create().value();
    std::unique_ptr<NetHost> host_;
    std::unique_ptr<PendingConnect> opening_;
    std::unique_ptr<SendLink> sender_;
};

TEST_F(NetTransportTest, AnAcceptThatFailsBeforeTheOfferIsTheSendersError) {
    open("fail=accept");
    const Status fault = serve_until([&] { return opening_ == nullptr && is_refused(); });
    EXPECT_THAT(fault.message(), HasSubstr("libnccl-net-strict_v12.so: ncclNetPlugin_v12: "
                                           "accept fails: system error (2)"));
    EXPECT_EQ(fault.peer(), 0);
}

TEST_F(NetTransportTest, AnAcceptThatFailsAfterTheOfferIsTheSendersError) {
    open("null=100,fail=accept:2");
    const Status fault = serve_until([&] { return opening_ == nullptr && is_refused(); });
    EXPECT_EQ(fault.code(), StatusCode::kPeerLost);
    EXPECT_THAT(fault.message(), HasSubstr("libnccl-net-strict_v12.so: ncclNetPlugin_v12: "
                                           "accept fails: system error (2)"));
    EXPECT_EQ(fault.peer(), 0);
}

TEST_F(NetTransportTest, AConnectThatFailsIsTheReceiversReasonToRefuse) {
    open("null=100,fail=connect:2");
    const Status fault = serve_until([&] { return opening_ == nullptr && is_refused(); });
    EXPECT_THAT(fault.message(), HasSubstr("connect fails: system error (2)"));
    EXPECT_THAT(host_->refusals.front().message(),
                HasSubstr("rank 1 has left the group: net plug-in "));
    EXPECT_THAT(host_->refusals.front().message(), HasSubstr("connect fails: system error (2)"));
}

std::vector<std::byte> numbered_bytes(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i)
        bytes[i] = static_cast<std::byte>((i * 2654435761U) >> 11U);
    return bytes;
}

TEST_F(NetTransportTest, ALinkUsesEachDeviceAsMuchAsItCarries) {
    open("devices=3,slow=1");
    const std::array before{strict_.sent(0), strict_.sent(1), strict_.sent(2)};
    const auto out = numbered_bytes(16 * kMiB);
    EXPECT_EQ(carry(out), out);
    std::array<long, 3> sent{};
    for (int i = 0; i < 3; ++i)
        sent.at(static_cast<std::size_t>(i)) =
            strict_.sent(i) - before.at(static_cast<std::size_t>(i));
    EXPECT_GT(sent[1], 0);
    EXPECT_GT(sent[0], 2 * sent[1]);
    EXPECT_GT(sent[2], 2 * sent[1]);
}

TEST_F(NetTransportTest, AnAttemptThatIsGivenUpIsContinuedUntilThePluginEndsIt) {
    open("null=100");
    const long before = strict_.communicators();
    static_cast<void>(serve_until([&] { return strict_.calls("connect") > 0; }));
    opening_.reset();
    static_cast<void>(serve_until([&] { return is_refused(); }));  // the receiver's part is over
    strict_.set("");
    static_cast<void>(serve_until([&] { return strict_.communicators() == before; }));
}

TEST_F(NetTransportTest, AThreadThatIsLeftInACallKeepsWhatItUsesAfterwards) {
    open("block=connect", std::chrono::milliseconds(300));
    const Status fault = serve_until([&] { return opening_ == nullptr; });
    EXPECT_THAT(fault.message(), HasSubstr("a call for a link with rank 0 has not returned"));
    host_.reset();
    const std::weak_ptr<Waiter> waiter = std::exchange(waiter_, nullptr);
    EXPECT_FALSE(waiter.expired());
    strict_.set("");
    for (const Deadline end = test_deadline(); !waiter.expired() && !end.passed();)
        system_clock().sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(waiter.expired());
}

}  // namespace
}  // namespace pccl::transport::netplugin
