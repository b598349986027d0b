// SPDX-License-Identifier: Apache-2.0

// Two processes of one fabric, with a socket between them.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "tests/cpp/fakes/verbs_end.h"
#include "tests/fakes/forked_child.h"

namespace pccl::fakes {

/// A folder of a fabric, which exists as long as this.
class FabricFolder {
   public:
    FabricFolder() {
        char name[] = "/tmp/fake_verbs.XXXXXX";
        path_ = ::mkdtemp(name);
    }
    ~FabricFolder() { std::filesystem::remove_all(path_); }
    FabricFolder(const FabricFolder&) = delete;
    FabricFolder& operator=(const FabricFolder&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

   private:
    std::string path_;
};

/// What a process exchanges with the other one.
class Peer {
   public:
    explicit Peer(int socket) : socket_(socket) {}

    void tell(const VerbsAddress& own) const {
        EXPECT_EQ(::write(socket_, &own, sizeof own), static_cast<ssize_t>(sizeof own));
    }
    [[nodiscard]] VerbsAddress ask() const {
        VerbsAddress other{};
        EXPECT_EQ(::read(socket_, &other, sizeof other), static_cast<ssize_t>(sizeof other));
        return other;
    }
    /// Returns when both have called it.
    void meet() const {
        char byte = 0;
        EXPECT_EQ(::write(socket_, &byte, 1), 1);
        EXPECT_EQ(::read(socket_, &byte, 1), 1);
    }
    /// Returns when the other one has ended.
    void wait_for_end() const {
        char byte = 0;
        EXPECT_EQ(::read(socket_, &byte, 1), 0);
    }
    /// Exchanges addresses, and connects.
    VerbsAddress connect(VerbsEnd& end) const {
        tell(end.address());
        const VerbsAddress other = ask();
        end.connect(other);
        meet();
        return other;
    }

   private:
    int socket_;
};

using ProcessBody = std::function<void(const Peer&)>;

/// Runs both bodies, each in a process of its own that joins the fabric first.
class TwoProcesses {
   public:
    TwoProcesses(const ProcessBody& first, const ProcessBody& second) {
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_), 0);
        first_.emplace([&] { return run(first, sockets_[0]); });
        second_.emplace([&] { return run(second, sockets_[1]); });
        ::close(sockets_[0]);
        ::close(sockets_[1]);
    }
    /// The exit codes: 0 without failed expectations, the negative number of a signal.
    [[nodiscard]] int join_first() { return first_->join(); }
    [[nodiscard]] int join_second() { return second_->join(); }

   private:
    int run(const ProcessBody& body, int socket) const {
        ::close(socket == sockets_[0] ? sockets_[1] : sockets_[0]);
        ::setenv("FAKE_VERBS_FABRIC", folder_.path().c_str(), 1);
        body(Peer(socket));
        return ::testing::Test::HasFailure() ? 1 : 0;
    }

    FabricFolder folder_;
    int sockets_[2] = {-1, -1};
    std::optional<ForkedChild> first_;
    std::optional<ForkedChild> second_;
};

/// Runs both, of which neither may fail.
inline void run_both(const ProcessBody& first, const ProcessBody& second) {
    TwoProcesses both(first, second);
    EXPECT_EQ(both.join_first(), 0);
    EXPECT_EQ(both.join_second(), 0);
}

}  // namespace pccl::fakes
