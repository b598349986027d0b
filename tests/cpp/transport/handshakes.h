// SPDX-License-Identifier: Apache-2.0

// A handshake server that serves in this thread, and clients of it.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/handshake_messages.h"
#include "csrc/transport/control/handshake_server.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport {

using fakes::test_deadline;
using handshake::ClientHello;
using handshake::ClientProof;
using handshake::ServerProof;
using handshake::Transcript;

class HandshakeReceptionist final : public HandshakeHost {
   public:
    std::optional<Secret> secret_of(const GroupId& group) override {
        if (group != kGroup) return std::nullopt;
        return kSecret;
    }
    void refused(std::string_view, const Status& why) override { refusals.push_back(why); }

    std::vector<Status> refusals;
};

class HandshakeTest : public testing::Test {
   protected:
    struct Welcomed {
        UniqueFd socket;
        Introduction introduction;
    };

    void SetUp() override { listen({}); }
    void listen(HandshakeServerOptions options) {
        auto made = HandshakeServer::listen(sys::Address::parse("127.0.0.1:0").value(), options);
        ASSERT_TRUE(made.is_ok()) << made.status().to_string();
        server_ = std::move(made.value());
    }
    void advance() {
        server_->advance(receptionist_, [this](UniqueFd socket, const Introduction& introduction) {
            welcomed_.push_back({std::move(socket), introduction});
        });
    }
    /// Serves until `done`, waiting for news like a transport's owner does.
    void serve_until(const std::function<bool()>& done) {
        const Deadline deadline = test_deadline();
        while (!done() && !deadline.passed()) {
            pollfd polled{.fd = server_->poll_fd(), .events = POLLIN, .revents = 0};
            if (::poll(&polled, 1, 20) > 0) advance();
        }
        ASSERT_TRUE(done());
    }
    void serve_until_refused(std::size_t count = 1) {
        serve_until([&] { return receptionist_.refusals.size() >= count; });
    }

    /// Whether a client with the secret is let in.
    bool connects() {
        std::atomic<bool> done{false};
        Status status;
        std::thread client([&] {
            const Introduction one{.request = {.group = kGroup, .destination = 5}};
            status =
                connect_authenticated({server_->address(), kSecret}, {&one, 1}, test_deadline())
                    .status();
            done = true;
        });
        serve_until([&] { return done.load(); });
        client.join();
        return status.is_ok();
    }

    UniqueFd raw_client() {
        return std::move(sys::connect_to(server_->address(), test_deadline()).value());
    }
    static ClientHello hello(std::uint8_t nonce, const GroupId& group = kGroup) {
        ClientHello message{handshake::kMagic, handshake::kVersion, group, {}};
        message.nonce.fill(nonce);
        return message;
    }
    template <typename Message>
    static void send(const UniqueFd& fd, const Message& message) {
        ASSERT_TRUE(sys::send_all(fd.get(), handshake::bytes_of(message), test_deadline()).is_ok());
    }
    template <typename Message>
    Message receive(const UniqueFd& fd) {
        Message message{};
        const auto into = std::as_writable_bytes(std::span(&message, 1));
        std::size_t got = 0;
        serve_until([&] {
            const auto more = sys::receive_some(fd.get(), into.subspan(got));
            if (!more.is_ok()) return true;
            got += more.value();
            return got == into.size();
        });
        EXPECT_EQ(got, sizeof message) << "the server closed";
        return message;
    }
    static ClientProof proof(const Transcript& transcript, const Secret& secret) {
        return {transcript.request, handshake::prove(secret, handshake::kClientLabel, transcript)};
    }
    /// Says hello and reads the answer, so that only the client's proof is missing.
    Transcript converse(const UniqueFd& fd, const ClientHello& client_hello) {
        send(fd, client_hello);
        return {client_hello, receive<ServerProof>(fd).nonce, {1, 2, 0, 4, 0, 0, 0, 0, {}}};
    }

    HandshakeReceptionist receptionist_;
    std::vector<Welcomed> welcomed_;
    std::unique_ptr<HandshakeServer> server_;
};

inline Introduction introduction(Rank source) {
    Introduction made{.request = {.group = kGroup,
                                  .source = source,
                                  .destination = 5,
                                  .channel = 3,
                                  .group_size = 9,
                                  .generation = 7},
                      .service = Service::kNotice,
                      .transport = 2};
    for (std::size_t i = 0; i < made.purpose.size(); ++i)
        made.purpose[i] = static_cast<std::uint8_t>(i + 100);
    return made;
}

/// A process of another user; killed in the end.
class Stranger {
   public:
    explicit Stranger(const std::function<void()>& body) : pid_(::fork()) {
        if (pid_ != 0) return;
        if (::setuid(65534) == 0) body();
        while (true) ::pause();
    }
    ~Stranger() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Stranger(const Stranger&) = delete;
    Stranger& operator=(const Stranger&) = delete;

   private:
    pid_t pid_;
};

inline sys::Address unix_address(const std::string& name) {
    return sys::Address::from_unix_name(concat("pccl-", name, "-", ::getpid())).value();
}

}  // namespace pccl::transport
