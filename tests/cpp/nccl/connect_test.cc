// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <array>
#include <functional>

#include "plugins/nccl/acceptor.h"
#include "plugins/nccl/connector.h"
#include "tests/cpp/nccl/comm_ends.h"

namespace pccl::nccl {
namespace {

/// A device whose paths are loopback addresses.
NetworkDevice loopbacks(std::initializer_list<const char*> addresses) {
    NetworkDevice device{.name = "loopbacks"};
    for (const char* address : addresses)
        device.interfaces.push_back({.name = "lo" + std::to_string(device.interfaces.size()),
                                     .address = sys::Address::from_ip(address, 0).value(),
                                     .prefix_bits = 32,
                                     .running = true,
                                     .loopback = true});
    return device;
}

class ConnectTest : public testing::Test {
   protected:
    void listen(const NetworkDevice& device) {
        acceptor_ = Acceptor::create(device, {.rank = 1, .host = "host-b"}).value();
        handle_ = Handle::decode(acceptor_->listen()->encode()).value();
    }
    /// Advances both ends until both have a communicator, or one has an error. Calls `at_step` with
    /// the number of each step.
    Status connect(
        const NetworkDevice& device, const std::function<void(int)>& at_step = [](int) {}) {
        auto connector = Connector::start(handle_, device, {.rank = 0, .host = "host-a"});
        PCCL_TRY(connector.status());
        send_.reset();
        recv_.reset();
        int step = 0;
        for (const Deadline end = test_deadline(); !end.passed();) {
            at_step(step++);
            if (send_ == nullptr) {
                PCCL_ASSIGN_OR_RETURN(send_, (*connector)->advance());
            }
            if (recv_ == nullptr) {
                PCCL_ASSIGN_OR_RETURN(recv_, acceptor_->accept(handle_.id));
            }
            if (send_ != nullptr && recv_ != nullptr) return Status::ok();
        }
        return Status::timeout("the ends do not meet");
    }
    /// Sends a message of several pieces.
    void expect_to_work() {
        const auto out = stamped(3 * kPieceBytes + 1, 4);
        std::vector<std::byte> in(out.size());
        Request* const sent = send_->isend(out).value();
        Request* const received = recv_->irecv(in).value();
        for (bool is_sent = false; !CommEnds::is_done(*received);)
            is_sent = is_sent || CommEnds::is_done(*sent);
        EXPECT_EQ(in, out);
    }

    std::shared_ptr<Acceptor> acceptor_;
    Handle handle_;
    std::unique_ptr<SendComm> send_;
    std::unique_ptr<RecvComm> recv_;
};

TEST_F(ConnectTest, BothEndsMeetOverEachPath) {
    const auto device = loopbacks({"127.0.0.1", "127.0.0.2", "127.0.0.3"});
    listen(device);
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(connect(device).to_string(), "ok");
        expect_to_work();
    }
}

TEST_F(ConnectTest, FurtherInterfacesOfOneEndShareTheOthersPaths) {
    listen(loopbacks({"127.0.0.1"}));
    ASSERT_EQ(connect(loopbacks({"127.0.0.1", "127.0.0.2"})).to_string(), "ok");
    expect_to_work();
    listen(loopbacks({"127.0.0.1", "127.0.0.2"}));
    ASSERT_EQ(connect(loopbacks({"127.0.0.1"})).to_string(), "ok");
    expect_to_work();
}

TEST_F(ConnectTest, APathThatDoesNotConnectIsLeftOut) {
    listen(loopbacks({"127.0.0.1"}));
    handle_.addresses.push_back(sys::Address::parse("127.0.0.2:1").value());  // nobody listens
    ASSERT_EQ(connect(loopbacks({"127.0.0.1", "127.0.0.2"})).to_string(), "ok");
    expect_to_work();
}

/// Breaks all connections to this address of the loopback.
void break_connections_to(const std::string& ip) {
    constexpr int kMostDescriptors = 1024;
    for (int fd = 0; fd < kMostDescriptors; ++fd) {
        const auto far = sys::peer_address(fd);
        if (far.is_ok() && far->ip_text() == ip) break_connection(fd);
    }
}

TEST_F(ConnectTest, APathThatBreaksAtAnyStepOfTheSetUpIsLeftOut) {
    const auto device = loopbacks({"127.0.0.1", "127.0.0.2"});
    for (const char* broken : {"127.0.0.1", "127.0.0.2"}) {
        for (int moment = 0; moment < 24; ++moment) {
            listen(device);
            const Status met = connect(device, [&](int step) {
                if (step == moment) break_connections_to(broken);
            });
            ASSERT_EQ(met.to_string(), "ok") << broken << " at step " << moment;
            expect_to_work();
        }
    }
}

class ArrivalsTest : public testing::Test {
   protected:
    static constexpr std::uint32_t kBoth = 3;

    ArrivalsTest() {
        for (std::size_t i = 0; i < 2; ++i) {
            auto pair = transport::tcp::tcp_pair();
            senders_.push_back(std::move(pair.near));
            const std::string number = std::to_string(i);
            arrivals_.add({.socket = std::move(pair.far),
                           .ends = {.near_interface = "b" + number, .far_interface = "a" + number}},
                          i);
        }
    }
    void begin(std::size_t path) {
        const Begin begin{.paths = kBoth};
        const auto bytes = std::as_bytes(std::span(&begin, 1));
        ASSERT_TRUE(sys::send_all(senders_[path].get(), bytes, test_deadline()).is_ok());
    }
    /// Advances until the paths are there, or none is left.
    Status meet() {
        for (const Deadline end = test_deadline(); !end.passed();) {
            PCCL_ASSIGN_OR_RETURN(const bool is_whole, arrivals_.advance());
            if (is_whole) return Status::ok();
        }
        return Status::timeout("the paths do not arrive");
    }
    void expect_one_path(std::size_t alive) {
        ASSERT_EQ(meet().to_string(), "ok");
        const auto paths = arrivals_.finish({.rank = 1});
        ASSERT_TRUE(paths.is_ok()) << paths.status().to_string();
        EXPECT_EQ(paths->count(), 2U);  // as the sender has
        EXPECT_TRUE(paths->is_alive(alive));
        EXPECT_FALSE(paths->is_alive(1 - alive));
        Identity identity{.magic = 0};
        const auto bytes = std::as_writable_bytes(std::span(&identity, 1));
        ASSERT_TRUE(sys::receive_all(senders_[alive].get(), bytes, test_deadline()).is_ok());
        EXPECT_EQ(identity.magic, Identity::kMagic);
    }

    std::vector<UniqueFd> senders_;
    Arrivals arrivals_{SocketRole{.host = HostName::of("host-a")}, 2,
                       std::chrono::milliseconds(50)};
};

TEST_F(ArrivalsTest, TheFirstPathIsLostWhereItBreaksBeforeItBegins) {
    senders_[0].reset();
    begin(1);
    expect_one_path(1);
}

TEST_F(ArrivalsTest, AnotherPathIsLostWhereItBreaksBeforeItBegins) {
    senders_[1].reset();
    begin(0);
    expect_one_path(0);
}

TEST_F(ArrivalsTest, APathOverWhichNothingComesIsLost) {
    begin(1);
    expect_one_path(1);
}

TEST_F(ArrivalsTest, ASenderThatGivesUpIsNamedWithTheFaultOfEachPath) {
    senders_.clear();
    const Status fault = meet();
    EXPECT_EQ(fault.code(), StatusCode::kPeerLost);
    EXPECT_THAT(fault.message(),
                testing::HasSubstr("no path of a connection from rank 2 on host-a is left (b0 "));
    EXPECT_THAT(fault.message(), testing::HasSubstr(", b1 "));
}

TEST_F(ConnectTest, AHandleThatNobodyServesAnyMoreIsAnErrorThatNamesThePeer) {
    const auto device = loopbacks({"127.0.0.1"});
    listen(device);
    acceptor_.reset();
    acceptor_ = Acceptor::create(device, {}).value();
    const Status fault = connect(device);
    EXPECT_EQ(fault.code(), StatusCode::kPeerLost);
    EXPECT_NE(fault.message().find("cannot connect to rank 1 (lo0 127.0.0.1 to 127.0.0.1: "),
              std::string::npos)
        << fault.message();
}

TEST_F(ConnectTest, AnotherKeyIsRefused) {
    const auto device = loopbacks({"127.0.0.1"});
    listen(device);
    handle_.key[0] ^= 1;
    const Status fault = connect(device);
    EXPECT_NE(fault.message().find("does not prove the secret"), std::string::npos)
        << fault.message();
}

TEST_F(ConnectTest, AHandleOfAJobWithASecretNeedsIt) {
    const auto device = loopbacks({"127.0.0.1"});
    listen(device);
    handle_.needs_secret = true;
    const Status fault = connect(device);
    EXPECT_EQ(fault.code(), StatusCode::kMismatch);
    EXPECT_NE(fault.message().find("set PCCL_SECRET_FILE here, too"), std::string::npos);
}

TEST_F(ConnectTest, AnEndWithoutACommonFamilyIsToldWhichInterfacesToName) {
    listen(loopbacks({"127.0.0.1"}));
    const Status fault = connect(loopbacks({"::1"}));
    EXPECT_EQ(fault.code(), StatusCode::kUnavailable);
    EXPECT_NE(fault.message().find("can reach 127.0.0.1: PCCL_SOCKET_IFNAME"), std::string::npos)
        << fault.message();
}

TEST(HandleTest, KeepsWhatItSays) {
    Handle handle{.needs_secret = true, .rank = 17};
    handle.id.fill(3);
    handle.key.fill(4);
    handle.addresses = {sys::Address::parse("10.1.2.3:4567").value(),
                        sys::Address::parse("[fd00::7]:65535").value()};
    const auto read = Handle::decode(handle.encode()).value();
    EXPECT_EQ(read.id, handle.id);
    EXPECT_EQ(read.key, handle.key);
    EXPECT_EQ(read.rank, 17);
    EXPECT_TRUE(read.needs_secret);
    EXPECT_EQ(read.addresses, handle.addresses);
}

TEST(HandleTest, HasRoomForThirteenAddresses) {
    Handle handle;
    for (int i = 0; i < 20; ++i)
        handle.addresses.push_back(
            sys::Address::parse("10.0.0." + std::to_string(i) + ":99").value());
    EXPECT_EQ(Handle::decode(handle.encode())->addresses.size(), 13U);
}

TEST(HandleTest, OtherBytesAreRefused) {
    Handle handle;
    handle.addresses = {sys::Address::parse("10.1.2.3:4567").value()};
    const HandleBytes good = handle.encode();
    EXPECT_EQ(Handle::decode(HandleBytes{}).status().code(), StatusCode::kInvalidArgument);
    for (const std::size_t at : {0, 4, 5, 12}) {  // magic, version, secret, count
        HandleBytes bad = good;
        bad[at] ^= std::byte{0x7f};
        EXPECT_FALSE(Handle::decode(bad).is_ok()) << at;
    }
    handle.addresses = {sys::Address::parse("10.1.2.3:4567").value().with_port(0)};
    EXPECT_FALSE(Handle::decode(handle.encode()).is_ok());
}

TEST(PathChoiceTest, SubnetsMeetAndTheRestFollowsInOrder) {
    NetworkDevice device;
    for (const char* address : {"10.0.0.1", "10.0.1.1", "10.0.2.1"})
        device.interfaces.push_back({.name = address,
                                     .address = sys::Address::from_ip(address, 0).value(),
                                     .prefix_bits = 24});
    std::vector<sys::Address> far;
    for (const char* address : {"10.0.2.9", "10.0.9.9", "10.0.0.9"})
        far.push_back(sys::Address::from_ip(address, 80).value());
    const auto paths = choose_paths(device, far);
    const auto has = [&](std::size_t interface, std::size_t address) {
        return std::ranges::any_of(paths, [&](const PathChoice& choice) {
            return choice.interface == interface && choice.address == address;
        });
    };
    EXPECT_EQ(paths.size(), 3U);
    EXPECT_TRUE(has(0, 2));
    EXPECT_TRUE(has(2, 0));
    EXPECT_TRUE(has(1, 1));
}

sys::Interface interface_of(const char* name, const char* address, bool loopback = false) {
    return {.name = name,
            .index = 1,
            .address = sys::Address::from_ip(address, 0).value(),
            .prefix_bits = 24,
            .running = true,
            .loopback = loopback};
}

TEST(NetworkDeviceTest, JoinsTheInterfacesThatTheJobAllows) {
    const std::vector<sys::Interface> all{
        interface_of("lo", "127.0.0.1", true), interface_of("eth0", "10.0.0.1"),
        interface_of("eth0", "fd00::1"), interface_of("eth1", "10.0.1.1"),
        interface_of("ib0", "10.0.2.1")};
    EXPECT_EQ(make_network_device(all, "eth")->name, "eth0+eth1");
    EXPECT_EQ(make_network_device(all, "eth")->interfaces.size(), 2U);
    EXPECT_EQ(make_network_device(all, "^eth1,lo")->name, "eth0+ib0");
    EXPECT_EQ(make_network_device(all, "10.0.2.0/24,fd00::/8")->name, "ib0+eth0");
    EXPECT_EQ(make_network_device(all, "lo")->name, "lo");
    EXPECT_EQ(make_network_device(all, "")->name, "eth0+eth1+ib0");
    EXPECT_FALSE(make_network_device(all, "wlan").is_ok());
}

}  // namespace
}  // namespace pccl::nccl
