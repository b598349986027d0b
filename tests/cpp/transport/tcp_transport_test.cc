// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/tcp_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/socket/route.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/cpp/transport/socket_purposes.h"
#include "tests/fakes/connect.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/host.h"

namespace pccl::transport::tcp {
namespace {

using fakes::test_deadline;

class TcpHost final : public fakes::Host {
   public:
    explicit TcpHost(const TcpOptions& options = {})
        : fakes::Host(
              [&options](Waiter& own) { return fakes::tcp_member(own, "127.0.0.0/8", options); }) {}
    std::optional<Secret> secret_of(const GroupId&) override { return kSecret; }
    void accepted(const LinkRequest& request, std::unique_ptr<RecvLink> link) override {
        requests.push_back(request);
        links.push_back(std::move(link));
    }
    void refused(std::string_view, const Status& why) override { refusals.push_back(why); }
    void accept_until(const std::function<bool()>& done) {
        const Deadline deadline = test_deadline();
        while (!done() && !deadline.passed()) serve(std::chrono::milliseconds(20));
        ASSERT_TRUE(done());
    }
    [[nodiscard]] sys::Address door() const {
        return sys::Address::parse(address().first_of(TransportKind::kTcp).value()).value();
    }
    /// Opens sockets as a proven peer would, with purposes of the test's choice.
    Result<std::vector<UniqueFd>> open_sockets(const std::vector<SocketPurpose>& purposes,
                                               Rank source = 3) {
        std::vector<Introduction> introductions;
        for (const SocketPurpose& purpose : purposes)
            introductions.push_back(
                {.request = {.group = kGroup, .source = source, .destination = 0},
                 .transport = static_cast<std::uint8_t>(TransportKind::kTcp),
                 .purpose = purpose.encode()});
        Result<std::vector<UniqueFd>> sockets = std::vector<UniqueFd>{};
        std::atomic<bool> done{false};
        std::thread connector([&] {
            sockets = connect_authenticated({door(), kSecret}, introductions, test_deadline());
            done = true;
        });
        accept_until([&] { return done.load(); });
        connector.join();
        return sockets;
    }

    std::vector<LinkRequest> requests;
    std::vector<std::unique_ptr<RecvLink>> links;
    std::vector<Status> refusals;
};

std::string text_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
/// What goes before a block of a stream over several sockets.
std::string number(char low) { return std::string(1, low) + std::string(7, '\0'); }

void expect_text(TcpHost& host, RecvLink& link, ChannelId channel, const std::string& wanted) {
    std::vector<std::byte> received(wanted.size());
    MutableBytes rest(received);
    Backoff backoff(host.waiter());
    const Deadline deadline = test_deadline();
    while (!rest.empty() && !deadline.passed()) {
        const auto got = link.receive(channel, rest);
        ASSERT_TRUE(got.is_ok()) << got.status().to_string();
        rest = rest.subspan(got.value());
        if (got.value() == 0) backoff.pause();
    }
    EXPECT_EQ(text_of(received), wanted);
}

PeerAddress at(const std::string& host, const std::string& address) {
    return {.control = {.host = host, .doors = {address}},
            .links = {{TransportKind::kTcp, {address}}}};
}

TEST(TcpTransportTest, LoopbackOfAnotherHostIsOutOfReach) {
    TcpHost host;
    EXPECT_TRUE(host.transport().reaches(host.address()).is_ok());
    const Status status = host.transport().reaches(at("elsewhere", "127.0.0.1:77"));
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), testing::HasSubstr("127.0.0.1:77"));
    EXPECT_TRUE(host.transport().reaches(at("elsewhere", "10.9.8.7:77")).is_ok());
}

TEST(TcpTransportTest, PassesOverAddressesThatLeadNowhere) {
    const NetworkSide here{.process = {.host = "here", .doors = {}, .kernel = "k"}};
    const ControlAddress peer{.host = "there", .doors = {}, .kernel = "l"};
    const auto ways = [&](const std::vector<std::string>& addresses) {
        return here.routes_to(peer, addresses);
    };
    EXPECT_FALSE(ways({}).is_ok());
    EXPECT_FALSE(ways({"127.0.0.1:7", "[::1]:7", "unix:@pccl-0"}).is_ok());
    // One that is alone is tried whatever the routes are now.
    EXPECT_EQ(ways({"unix:@pccl-0", "127.0.0.1:7", "192.0.2.7:7"}).is_ok(),
              sys::route_source(sys::Address::from_ip("192.0.2.7", 0).value()).is_ok());
    EXPECT_TRUE(ways({"192.0.2.7:7"}).is_ok());
    const auto interfaces = sys::list_interfaces();
    for (const sys::Interface& own : interfaces.value()) {
        if (!own.running || own.loopback || own.address.is_link_local()) continue;
        const std::string text = own.address.with_port(7).to_string();
        EXPECT_TRUE(ways({text}).is_ok());
        const Status status = ways({text, "127.0.0.1:7"}).status();
        EXPECT_THAT(status.message(), testing::HasSubstr(own.name));
    }
}

TEST(TcpTransportTest, RefusesUnusableOptions) {
    const auto waiter = std::move(Waiter::create().value());
    for (const int sockets : {0, 17})
        EXPECT_EQ(TcpTransport::create(*waiter, {}, {.data_sockets = sockets}).status().code(),
                  StatusCode::kInvalidArgument);
    EXPECT_EQ(fakes::tcp_member(*waiter, "=nope").status().code(), StatusCode::kUnavailable);
}

TEST(TcpTransportTest, StripesAStreamOverItsSocketsInBlocks) {
    TcpHost host;
    auto sockets = host.open_sockets({purpose(0), purpose(1), purpose(2), purpose(3)});
    ASSERT_TRUE(sockets.is_ok()) << sockets.status().to_string();
    host.accept_until([&] { return host.links.size() == 1; });
    const std::string a(1024, 'a');
    const std::string b(1024, 'b');
    // The second block comes first; what was sent by hand lands where the numbers say.
    ASSERT_TRUE(sys::send_all((*sockets)[2].get(), bytes_of(number(1) + b + number(3) + "d"),
                              test_deadline())
                    .is_ok());
    ASSERT_TRUE(sys::send_all((*sockets)[1].get(),
                              bytes_of(number(0) + a + number(2) + std::string(1024, 'c')),
                              test_deadline())
                    .is_ok());
    ASSERT_TRUE(sys::send_all((*sockets)[0].get(), bytes_of("message"), test_deadline()).is_ok());
    expect_text(host, *host.links[0], kCollectiveChannel, a + b + std::string(1024, 'c') + "d");
    expect_text(host, *host.links[0], kMessageChannel, "message");
}

TEST(TcpTransportTest, LinksThatArriveMixedUpAreDistinguished) {
    TcpHost host;
    SocketPurpose other = purpose(0, 1);
    other.link = {8};
    SocketPurpose watch = other;
    watch.index = 2;
    auto first = host.open_sockets({purpose(2), purpose(0), purpose(3)});
    EXPECT_TRUE(host.links.empty()) << "a link is complete or not there";
    auto second = host.open_sockets({other}, 4);
    other.index = 1;
    auto second_too = host.open_sockets({other, watch}, 4);
    auto first_too = host.open_sockets({purpose(1)});
    host.accept_until([&] { return host.links.size() == 2; });
    EXPECT_EQ(host.requests[0].source, 4);
    EXPECT_EQ(host.requests[1].source, 3);
    ASSERT_TRUE(sys::send_all((*first_too)[0].get(), bytes_of(number(0) + "first"), test_deadline())
                    .is_ok());
    ASSERT_TRUE(sys::send_all((*second_too)[0].get(), bytes_of("second"), test_deadline()).is_ok());
    expect_text(host, *host.links[0], kCollectiveChannel, "second");
    expect_text(host, *host.links[1], kCollectiveChannel, "first");
}

TEST(TcpTransportTest, SocketsThatDoNotBelongAreRefused) {
    TcpHost host;
    auto first = host.open_sockets({purpose(0)});
    auto twice = host.open_sockets({purpose(0)});
    host.accept_until([&] { return host.refusals.size() == 1; });
    auto stranger = host.open_sockets({purpose(1)}, 5);
    host.accept_until([&] { return host.refusals.size() == 2; });
    auto impossible = host.open_sockets({purpose(7)});
    host.accept_until([&] { return host.refusals.size() == 3; });
    EXPECT_TRUE(sys::peer_has_closed((*impossible)[0].get()));
    EXPECT_TRUE(host.links.empty());
    auto rest = host.open_sockets({purpose(1), purpose(2), purpose(3)});
    host.accept_until([&] { return host.links.size() == 1; });
}

TEST(TcpTransportTest, ALinkThatIsGivenUpHalfWayTakesNoSockets) {
    TcpHost host;
    {
        auto some = host.open_sockets({purpose(0), purpose(2)});
        ASSERT_TRUE(some.is_ok());
    }
    host.accept_until([&] { return host.refusals.size() == 1; });
    EXPECT_THAT(host.refusals[0].message(), testing::HasSubstr("rank 3 gave up opening a link"));
    auto whole = host.open_sockets({purpose(0), purpose(1), purpose(2), purpose(3)});
    host.accept_until([&] { return host.links.size() == 1; });
}

TEST(TcpTransportTest, GarbageAtTheDoorDisturbsNobody) {
    TcpHost host;
    const auto visitor = sys::connect_to(host.door(), test_deadline());
    ASSERT_TRUE(
        sys::send_all(visitor->get(), std::vector<std::byte>(100'000), test_deadline()).is_ok());
    auto sockets = host.open_sockets({purpose(0), purpose(1), purpose(2), purpose(3)});
    EXPECT_TRUE(sockets.is_ok());
    host.accept_until([&] { return host.links.size() == 1 && host.refusals.size() == 1; });
}

/// A link of a host to itself.
std::unique_ptr<SendLink> loop(TcpHost& host) {
    std::unique_ptr<SendLink> link;
    std::atomic<bool> done{false};
    std::thread connector([&] {
        link = fakes::connect(host.transport(), host.address(),
                              {.group = kGroup, .source = 1, .destination = 0}, kSecret,
                              test_deadline())
                   .value();
        done = true;
    });
    host.accept_until([&] { return done && !host.links.empty(); });
    connector.join();
    return link;
}

TEST(TcpTransportTest, CapacityGrowsWithTheSockets) {
    const auto capacity_with = [](int sockets) {
        // As between hosts: within one, a turn fills the buffer of its socket.
        TcpHost host({.data_sockets = sockets, .near_block_bytes = tcp::TcpOptions().block_bytes});
        const auto link = loop(host);
        EXPECT_GE(link->capacity(kMessageChannel), 100 * kKiB);
        return link->capacity(kCollectiveChannel);
    };
    EXPECT_GE(capacity_with(4), 2 * capacity_with(1));
}

TEST(TcpTransportTest, HoldsWhatSchedulesCountOnAlsoWithoutPrivileges) {
    constexpr std::size_t kCountedOn = 257 * kKiB;  // costs::kTcpCapacity
    constexpr std::size_t kGranted = 212'992;       // net.core.wmem_max, unless somebody raises it
    for (const int sockets : {1, 2, 4}) {
        TcpHost host(
            {.data_sockets = sockets, .stream = {.buffer_bytes = kGranted, .give_up = {}}});
        const auto link = loop(host);
        const std::vector<std::byte> bytes(kCountedOn);
        std::size_t taken = 0;
        for (const Deadline deadline = test_deadline(); taken < kCountedOn && !deadline.passed();) {
            const auto more =
                link->send(kCollectiveChannel, Bytes(bytes).subspan(taken), Flush::kNow);
            ASSERT_TRUE(more.is_ok()) << more.status().to_string();
            taken += *more;
        }
        EXPECT_EQ(taken, kCountedOn) << sockets << " sockets, and nobody reads";
    }
}

/// Connections to `port` here that the kernel keeps because the peer has not taken all that was
/// sent.
int unfinished_connections_to(std::uint16_t port) {
    std::ifstream table("/proc/net/tcp");
    std::string line;
    int count = 0;
    while (std::getline(table, line)) {
        std::istringstream fields(line);
        std::string index;
        std::string local;
        std::string remote;
        std::string state;
        fields >> index >> local >> remote >> state;
        const bool is_closing = state == "04" || state == "0B";  // FIN_WAIT1, CLOSING
        const auto colon = remote.find(':');
        if (is_closing && std::stoi(remote.substr(colon + 1), nullptr, 16) == port) ++count;
    }
    return count;
}

TEST(TcpTransportTest, TheKernelForgetsWhatALostPeerDoesNotTake) {
    TcpHost host({.peer_timeout = std::chrono::seconds(2)});
    const auto link = loop(host);
    const std::vector<std::byte> block(1 * kMiB);
    std::size_t sent = 0;
    do {
        const auto taken = link->send(kMessageChannel, block, Flush::kNow);
        ASSERT_TRUE(taken.is_ok());
        sent = *taken;
    } while (sent > 0);
    const auto port = host.door().port();
    link->abort(Status::peer_lost(0, "its host does not answer"));
    ASSERT_GT(unfinished_connections_to(port), 0) << "the peer has read nothing";
    const Deadline deadline = test_deadline();
    while (unfinished_connections_to(port) > 0 && !deadline.passed())
        system_clock().sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(unfinished_connections_to(port), 0);
}

}  // namespace
}  // namespace pccl::transport::tcp
