// SPDX-License-Identifier: Apache-2.0

// The control plane of real processes, beyond what all of them promise (tests/contract).
#include "csrc/transport/control/control_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/sys/socket/echo.h"
#include "csrc/transport/control/echoes.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/inquiry.h"
#include "csrc/transport/control/socket_control_plane.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/no_descriptors.h"

namespace pccl::transport {
namespace {

using fakes::test_deadline;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr LinkRequest kRequest{.group = kGroup, .source = 0, .destination = 1, .group_size = 2};

std::unique_ptr<SocketControlPlane> make(const ControlOptions& options) {
    auto made = SocketControlPlane::create(options);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return std::move(made.value());
}

class ControlReceptionist final : public ControlHost {
   public:
    std::optional<Secret> secret_of(const GroupId& group) override {
        return group == kGroup ? std::optional(kSecret) : std::nullopt;
    }
    void refused(std::string_view, const Status& why) override { refusals.push_back(why); }
    std::string answer(const LinkRequest&) override { return "well"; }
    void noticed(const LinkRequest&, const Status&) override {}
    std::string status(const StatusQuestion& question) override {
        return concat("from ", question.first, " on");
    }
    void arrived(Arrival arrival) override { arrivals.push_back(std::move(arrival)); }

    std::vector<Status> refusals;
    std::vector<Arrival> arrivals;
};

/// A client that has its descriptors before it connects.
class Visitor {
   public:
    Visitor(const std::string& door, Service service) {
        const Introduction introduction{.request = kRequest, .service = service};
        client_ = std::move(
            HandshakeClient::start(
                {.address = sys::Address::parse(door).value(), .secret = kSecret, .stream = {}},
                {&introduction, 1}, nullptr)
                .value());
    }
    /// Until it is accepted.
    UniqueFd visit(ControlPlane& control, ControlHost& host) {
        for (const Deadline deadline = test_deadline(); !deadline.passed();) {
            const auto accepted = client_->advance();
            EXPECT_TRUE(accepted.is_ok()) << accepted.status().to_string();
            if (!accepted.is_ok()) break;
            if (*accepted) return std::move(client_->take_sockets().front());
            control.advance(host);
        }
        return {};
    }

   private:
    std::unique_ptr<HandshakeClient> client_;
};

TEST(SocketControlPlaneTest, AnswersEchoesOfMembersWithoutItsHost) {
    const auto control = make({.within_host = false, .interface = "127.0.0.0/8"});
    ControlReceptionist host;
    std::atomic<bool> is_over{false};
    std::thread acceptor([&] {
        while (!is_over.load()) control->advance(host);
    });
    ConnectArgs args{.address = sys::Address::parse(control->address().doors.front()).value(),
                     .secret = kSecret};
    bool is_answered = false;  // within EchoServer::kLongest, which load may keep it from
    for (const Deadline deadline = test_deadline(); !is_answered && !deadline.passed();) {
        const auto connection = connect_for_echoes(args, kRequest, test_deadline());
        ASSERT_TRUE(connection.is_ok()) << connection.status().to_string();
        is_answered = sys::ask_echo(connection->get(), {}, test_deadline()).is_ok();
    }
    EXPECT_TRUE(is_answered);
    args.secret = {9};
    EXPECT_FALSE(connect_for_echoes(args, kRequest, test_deadline()).is_ok());
    is_over.store(true);
    acceptor.join();
    EXPECT_TRUE(host.arrivals.empty());
}

TEST(SocketControlPlaneTest, ListensOnTheSidesThatWereAskedFor) {
    const auto within = make({.between_hosts = false});
    EXPECT_THAT(within->address().doors, ElementsAre(StartsWith("unix:@pccl-")));
    EXPECT_EQ(within->between_hosts().status().code(), StatusCode::kUnavailable);
    const auto between = make({.within_host = false, .interface = "127.0.0.0/8"});
    EXPECT_THAT(between->address().doors, ElementsAre(StartsWith("127.0.0.1:")));
    EXPECT_EQ(between->within_host().status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(between->poll_fds().size(), 1U);
    EXPECT_EQ(between->address().host, within->address().host);
}

TEST(SocketControlPlaneTest, ASideThatCannotBeHadLeavesTheOther) {
    const auto control = make({.interface = "=nope"});
    EXPECT_TRUE(control->within_host().is_ok());
    EXPECT_EQ(control->between_hosts().status().code(), StatusCode::kUnavailable);
    EXPECT_THAT(control->between_hosts().status().message(), HasSubstr("nope"));
    EXPECT_EQ(control->address().doors.size(), 1U);
}

TEST(SocketControlPlaneTest, OnlyItsOwnHostComesByTheUnixSocket) {
    const auto control = make({.interface = "127.0.0.0/8"});
    const auto other = make({.interface = "127.0.0.0/8"});
    ControlAddress near = other->address();
    near.doors.pop_back();
    EXPECT_TRUE(control->probe(near, test_deadline()).is_ok());
    ControlAddress far = other->address();
    far.host = "elsewhere";
    far.kernel = "another";
    const Status status = control->query(far, kRequest, kSecret, test_deadline()).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr(other->address().doors.back()));
}

TEST(SocketControlPlaneTest, UsersAndKernelsShareNoMemory) {
    const ControlAddress here{.host = "a", .doors = {}, .kernel = "k", .user = 0};
    EXPECT_TRUE(may_share_memory(here, here).is_ok());
    ControlAddress there = here;
    there.user = 65534;
    EXPECT_THAT(may_share_memory(here, there).message(), HasSubstr("runs as user 65534"));
    there = here;
    there.kernel = "other";
    EXPECT_EQ(may_share_memory(here, there).code(), StatusCode::kUnavailable);
    there = here;
    there.host = "b";
    EXPECT_EQ(may_share_memory(here, there).code(), StatusCode::kUnavailable);
}

/// A process whose unix socket leads nowhere from here, and which listens on the network, too.
class FarProcess {
   public:
    FarProcess() : control_(make({.interface = "127.0.0.0/8"})) {
        thread_ = std::thread([this] {
            while (!is_over_.load()) control_->advance(host_);
        });
    }
    ~FarProcess() {
        is_over_.store(true);
        thread_.join();
    }
    [[nodiscard]] ControlAddress address() const { return control_->address(); }

   private:
    std::unique_ptr<SocketControlPlane> control_;
    ControlReceptionist host_;
    std::atomic<bool> is_over_{false};
    std::thread thread_;
};

TEST(SocketControlPlaneTest, AsksOverTheNetworkWhereTheUnixSocketLeadsNowhere) {
    const auto control = make({.interface = "127.0.0.0/8"});
    const FarProcess far;
    ControlAddress peer = far.address();
    peer.doors.front() = "unix:@pccl-of-another-machine-with-this-identity";
    const auto answer = control->query(peer, kRequest, kSecret, test_deadline());
    ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
    EXPECT_EQ(*answer, "well");
    EXPECT_TRUE(control->probe(peer, test_deadline()).is_ok());
    peer.doors.pop_back();
    EXPECT_EQ(control->query(peer, kRequest, kSecret, test_deadline()).status().code(),
              StatusCode::kPeerLost);
}

TEST(SocketControlPlaneTest, FindsTheAddressAtWhichAPeerProvesItself) {
    const auto control = make({.interface = "127.0.0.0/8"});
    const FarProcess far;
    const FarProcess stranger;
    const std::string right = far.address().doors.back();
    const auto listener = sys::listen_on(sys::Address::parse("127.0.0.1:0").value()).value();
    const std::string silent = sys::local_address(listener.get())->to_string();
    const std::string refused = "127.0.0.1:1";
    for (const auto& addresses : std::vector<std::vector<std::string>>{
             {right, refused}, {refused, right}, {silent, right}, {refused, silent, right}}) {
        ControlAddress peer = far.address();
        peer.host = concat("elsewhere, with ", addresses.size(), " from ", addresses.front());
        const auto found =
            control->find_address(peer, addresses, kRequest, kSecret, test_deadline());
        ASSERT_TRUE(found.is_ok()) << found.status().to_string();
        EXPECT_EQ(*found, right);
    }
    ControlAddress peer = far.address();
    peer.host = "nowhere";
    const Status lost =
        control->find_address(peer, {refused, "127.0.0.2:1"}, kRequest, kSecret, test_deadline())
            .status();
    EXPECT_EQ(lost.code(), StatusCode::kPeerLost);
    EXPECT_EQ(lost.peer(), kRequest.destination);
    for (const char* part :
         {"127.0.0.1:1", "127.0.0.2:1", "Connection refused", "PCCL_SOCKET_IFNAME"})
        EXPECT_THAT(lost.message(), HasSubstr(part));
    const Status late = control
                            ->find_address(peer, {silent, silent}, kRequest, kSecret,
                                           Deadline::after(std::chrono::milliseconds(50)))
                            .status();
    EXPECT_EQ(late.code(), StatusCode::kTimeout);
}

TEST(SocketControlPlaneTest, HandsOnWhatIsNeitherQuestionNorNotice) {
    const auto control = make({.between_hosts = false});
    ControlReceptionist host;
    for (const Service service : {Service::kLink, Service::kRegion}) {
        const UniqueFd socket =
            Visitor(control->address().doors.front(), service).visit(*control, host);
        ASSERT_EQ(host.arrivals.size(), 1U);
        EXPECT_EQ(host.arrivals[0].introduction.service, service);
        EXPECT_TRUE(host.arrivals[0].socket.is_open());
        EXPECT_TRUE(host.arrivals[0].shortage.is_ok());
        host.arrivals.clear();
    }
    EXPECT_TRUE(host.refusals.empty());
}

/// How a client fails that proves `secret`.
Status refusal(SocketControlPlane& control, ControlReceptionist& host,
               const Introduction& introduction, const Secret& secret) {
    const ConnectArgs door{.address = sys::Address::parse(control.address().doors.front()).value(),
                           .secret = secret};
    const auto client = HandshakeClient::start(door, {&introduction, 1}, nullptr).value();
    Status status;
    for (const Deadline deadline = test_deadline(); status.is_ok() && !deadline.passed();) {
        status = client->advance().status();
        control.advance(host);
    }
    return status;
}

/// What an onlooker is told at a door that another thread serves.
Result<std::string> look(SocketControlPlane& control, const std::string& door, const Secret& job) {
    ControlReceptionist host;
    std::atomic<bool> over{false};
    std::thread acceptor([&] {
        while (!over.load()) control.advance(host);
    });
    auto answer = ask_status(sys::Address::parse(door).value(), job, {.first = 3}, test_deadline());
    over.store(true);
    acceptor.join();
    return answer;
}

TEST(SocketControlPlaneTest, WithoutASecretOfTheJobOnlyItsHostMayLook) {
    const auto control = make({.interface = "127.0.0.0/8"});
    const auto within = look(*control, control->address().doors[0], kNoJobSecret);
    ASSERT_TRUE(within.is_ok()) << within.status().to_string();
    EXPECT_EQ(*within, "from 3 on");
    const Status between = look(*control, control->address().doors[1], kNoJobSecret).status();
    EXPECT_EQ(between.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(between.message(), HasSubstr("does not prove the secret"));
}

TEST(SocketControlPlaneTest, WithASecretOfTheJobWhoHasItMayLook) {
    const auto control = make({.interface = "127.0.0.0/8", .job = kSecret});
    for (const std::string& door : control->address().doors) {
        const auto answer = look(*control, door, kSecret);
        ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
        EXPECT_EQ(*answer, "from 3 on");
        EXPECT_EQ(look(*control, door, kNoJobSecret).status().code(), StatusCode::kInvalidArgument);
    }
}

TEST(SocketControlPlaneTest, AnOnlookerAsksForNothingElse) {
    const auto control = make({.between_hosts = false});
    ControlReceptionist host;
    for (const Service service :
         {Service::kLink, Service::kRegion, Service::kQuery, Service::kNotice}) {
        const Introduction introduction{.request = {.group = kOnlookers}, .service = service};
        const Status refused = refusal(*control, host, introduction, kNoJobSecret);
        EXPECT_EQ(refused.code(), StatusCode::kPeerLost);
    }
    EXPECT_TRUE(host.arrivals.empty());
    EXPECT_EQ(host.refusals.size(), 4U);
}

TEST(SocketControlPlaneTest, ARankOfAGroupIsNoOnlooker) {
    const auto control = make({.between_hosts = false});
    ControlReceptionist host;
    const Introduction introduction{.request = kRequest, .service = Service::kStatus};
    EXPECT_EQ(refusal(*control, host, introduction, kSecret).code(), StatusCode::kPeerLost);
}

TEST(SocketControlPlaneTest, WithoutDescriptorsItAnswersQuestionsAndSaysWhatLinksLack) {
    const auto control = make({.between_hosts = false});
    ControlReceptionist host;
    Visitor asks(control->address().doors.front(), Service::kQuery);
    Visitor links(control->address().doors.front(), Service::kLink);
    const fakes::NoDescriptors none;
    const UniqueFd asked = asks.visit(*control, host);
    std::uint32_t bytes = 0;
    ASSERT_TRUE(
        sys::receive_all(asked.get(), std::as_writable_bytes(std::span(&bytes, 1)), test_deadline())
            .is_ok());
    EXPECT_EQ(bytes, std::string_view("well").size());
    const UniqueFd linked = links.visit(*control, host);
    ASSERT_EQ(host.arrivals.size(), 1U);
    EXPECT_EQ(host.arrivals[0].shortage.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(host.arrivals[0].shortage.message(), HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace pccl::transport
