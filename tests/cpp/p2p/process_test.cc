// SPDX-License-Identifier: Apache-2.0

// Sessions of several processes, which come, are killed, and come back.
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include <pccl/session.h>
#include "csrc/base/assert.h"
#include "csrc/base/ids.h"
#include "tests/cpp/p2p/pair.h"
#include "tests/fakes/forked_child.h"

namespace pccl::p2p {
namespace {

/// What one process tells another, whole.
class TextPipe {
   public:
    TextPipe() { PCCL_ASSERT(::pipe(ends_.data()) == 0); }
    ~TextPipe() {
        ::close(ends_[0]);
        close_writer();
    }
    TextPipe(const TextPipe&) = delete;
    TextPipe& operator=(const TextPipe&) = delete;

    /// Who hears then knows when the other process has ended.
    void close_writer() {
        if (const int end = std::exchange(ends_[1], -1); end >= 0) ::close(end);
    }
    void write(const std::string& text) const {
        const std::size_t bytes = text.size();
        PCCL_ASSERT(::write(ends_[1], &bytes, sizeof bytes) == sizeof bytes);
        PCCL_ASSERT(::write(ends_[1], text.data(), bytes) == static_cast<ssize_t>(bytes));
    }
    [[nodiscard]] std::string read() const {
        std::size_t bytes = 0;
        PCCL_ASSERT(::read(ends_[0], &bytes, sizeof bytes) == sizeof bytes);
        std::string text(bytes, '\0');
        for (std::size_t here = 0; here < bytes;) {
            const ssize_t more = ::read(ends_[0], text.data() + here, bytes - here);
            PCCL_ASSERT(more > 0);
            here += static_cast<std::size_t>(more);
        }
        return text;
    }

   private:
    std::array<int, 2> ends_{};
};

/// Another process with a session "server" and stamped memory, whose program then does nothing.
class Server {
   public:
    static constexpr std::size_t kBytes = 4 * kMiB;

    Server(const std::string& transports, unsigned seed) {
        process_.emplace([&] {
            const auto server = session("server", transports);
            const Stamped memory(*server, kBytes, seed);
            pipe_.write(server->connection_info());
            pipe_.write(memory.local->serialised_descriptor());
            for (;;) ::pause();
            return 0;
        });
        pipe_.close_writer();
        info = pipe_.read();
        descriptor = pipe_.read();
    }
    void kill() { process_.reset(); }

   private:
    TextPipe pipe_;
    std::optional<fakes::ForkedChild> process_;

   public:
    std::string info;
    std::string descriptor;
};

bool are_stamped(std::span<const std::byte> bytes, unsigned seed) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i] != Stamped::stamp(i, seed)) return false;
    return true;
}

std::size_t entries(const char* folder) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

class ProcessTest : public testing::TestWithParam<std::string> {
   protected:
    void SetUp() override {
#ifdef __SANITIZE_THREAD__
        GTEST_SKIP() << "ThreadSanitizer lets no child of a process with threads start any";
#endif
    }
    RemoteMemory meet(const Server& server) {
        EXPECT_TRUE(client_->load_remote_conn_info(server.info).is_ok());
        return client_->import_memory("server", server.descriptor).value();
    }
    Status read(const RemoteMemory& from) {
        return ended(client_->read(mine_.all(), all_of(from)));
    }

    const std::unique_ptr<Session> client_ = session("client", GetParam());
    Stamped mine_{*client_, Server::kBytes, 99};
};

TEST_P(ProcessTest, AProgramThatMakesNoCallIsReadAndWritten) {
    const Server server(GetParam(), 1);
    const RemoteMemory theirs = meet(server);
    ASSERT_EQ(read(theirs).to_string(), "ok");
    EXPECT_TRUE(are_stamped(mine_.bytes(), 1));
    const Stamped other(*client_, Server::kBytes, 2);
    ASSERT_EQ(ended(client_->write(other.all(), all_of(theirs))).to_string(), "ok");
    ASSERT_EQ(read(theirs).to_string(), "ok");
    EXPECT_TRUE(are_stamped(mine_.bytes(), 2));
}

TEST_P(ProcessTest, WhoIsKilledIsLostAndWhoComesBackIsReached) {
    Server server(GetParam(), 1);
    const RemoteMemory theirs = meet(server);
    ASSERT_EQ(read(theirs).to_string(), "ok");
    std::thread killer([&] { server.kill(); });
    Status status;
    while (status.is_ok()) {
        std::ranges::fill(mine_.bytes(), std::byte{0});
        status = read(theirs);
        if (status.is_ok()) {
            EXPECT_TRUE(are_stamped(mine_.bytes(), 1));
        }
    }
    EXPECT_TRUE(client_->peers().empty()) << "as soon as a transfer has said so";
    killer.join();
    EXPECT_EQ(status.code(), StatusCode::kPeerLost) << status.to_string();
    EXPECT_THAT(status.message(), testing::HasSubstr("session \"server\" (process "));
    EXPECT_EQ(read(theirs).code(), StatusCode::kPeerLost) << "nobody is there";
    const Server successor(GetParam(), 2);
    const RemoteMemory anew = meet(successor);
    ASSERT_EQ(read(anew).to_string(), "ok");
    EXPECT_TRUE(are_stamped(mine_.bytes(), 2));
    EXPECT_EQ(read(theirs).code(), StatusCode::kUnavailable) << "of its first incarnation";
}

TEST_P(ProcessTest, ConnectingRightAfterADeathReportsItAndItsSuccessorIsReached) {
    for (unsigned round = 0; round < 20; ++round) {
        Server server(GetParam(), round);
        const RemoteMemory theirs = meet(server);
        ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok") << round;
        ASSERT_EQ(read(theirs).to_string(), "ok") << round;
        EXPECT_TRUE(are_stamped(mine_.bytes(), round));
        server.kill();
        const Status gone = client_->connect("server", test_deadline());
        ASSERT_EQ(gone.code(), StatusCode::kPeerLost) << round << ": " << gone.to_string();
    }
}

TEST_P(ProcessTest, NothingIsLeftOfPeersThatCameAndWent) {
    std::size_t files = 0;
    std::size_t threads = 0;
    constexpr unsigned kIncarnations = 12;
    for (unsigned incarnation = 0; incarnation < kIncarnations; ++incarnation) {
        Server server(GetParam(), incarnation);
        const RemoteMemory theirs = meet(server);
        ASSERT_EQ(read(theirs).to_string(), "ok");
        ASSERT_TRUE(are_stamped(mine_.bytes(), incarnation));
        if (incarnation % 2 == 0) {
            ASSERT_TRUE(client_->disconnect("server").is_ok());
        }
        server.kill();
        while (read(theirs).is_ok()) {
        }
        ASSERT_TRUE(client_->disconnect("server").is_ok());
        if (incarnation == 1) {
            files = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
        }
    }
    EXPECT_LE(entries("/proc/self/fd"), files);
    EXPECT_LE(entries("/proc/self/task"), threads);
}

INSTANTIATE_TEST_SUITE_P(Transports, ProcessTest, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace pccl::p2p
