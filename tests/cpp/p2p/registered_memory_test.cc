// SPDX-License-Identifier: Apache-2.0

// Peers reach memory within its bounds, while it is registered, and with its descriptor alone.
#include "csrc/p2p/transfers/registered_memory.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <regex>

#include "csrc/base/ids.h"
#include "csrc/sys/memory_left.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;
using SessionTest = Pair;

TEST_P(SessionTest, WhatIsOutOfBoundsIsRefusedBeforeAnythingMoves) {
    const auto before = mine_.bytes();
    for (const Extent there : {Extent{kBytes, 1}, Extent{kBytes - 1, 2}, Extent{~0ULL, 2},
                               Extent{~0ULL - 7, 8}, Extent{0, kBytes + 1}}) {
        const Status status =
            client_->read({mine_.local, {0, there.bytes}}, {remote_, there}).status();
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    }
    EXPECT_EQ(mine_.bytes(), before);
}

TEST_P(SessionTest, MemoryThatIsDeregisteredIsNotReachedAnyMore) {
    ASSERT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).to_string(), "ok");
    ASSERT_EQ(server_->deregister_memory(theirs_.local).to_string(), "ok");
    const auto before = theirs_.bytes();
    std::ranges::fill(mine_.bytes(), std::byte{0xEE});
    for (const auto op : {transport::RmaOp::kRead, transport::RmaOp::kWrite}) {
        auto plan = Plan::make({mine_.local, Extent{0, kBytes}}, {remote_, Extent{0, kBytes}});
        const Status status = ended(client_->post(op, plan.value()));
        EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.to_string();
        EXPECT_THAT(status.message(), HasSubstr("session \"server\""));
    }
    EXPECT_EQ(theirs_.bytes(), before);
    EXPECT_EQ(server_->deregister_memory(theirs_.local).to_string(), "ok") << "again: nothing";
}

TEST_P(SessionTest, WhatIsRegisteredAnewNeedsItsNewDescriptor) {
    const auto again = server_->register_memory(theirs_.bytes()).value();
    EXPECT_NE(again->serialised_descriptor(), theirs_.local->serialised_descriptor());
    ASSERT_EQ(server_->deregister_memory(theirs_.local).to_string(), "ok");
    EXPECT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).code(), StatusCode::kUnavailable);
    const RemoteMemory anew = seen_by(*client_, *server_, *again);
    EXPECT_EQ(ended(client_->read(mine_.all(), all_of(anew))).to_string(), "ok");
    EXPECT_EQ(mine_.bytes(), theirs_.bytes());
}

TEST_P(SessionTest, ADescriptorOfAnotherSessionIsNotImported) {
    const auto other = session("other", GetParam());
    Stamped its(*other, 100, 3);
    const std::string descriptor = its.local->serialised_descriptor();
    const Status status = client_->import_memory("server", descriptor).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.to_string();
    EXPECT_EQ(client_->import_memory("nobody", descriptor).status().code(),
              StatusCode::kInvalidArgument);
}

TEST_P(SessionTest, AWrongNonceOpensNothing) {
    remote_ = changed(remote_, [](auto& descriptor) { descriptor.nonce ^= 2; });
    const Status status = ended(client_->read(mine_.all(), all_of(remote_)));
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.to_string();
}

TEST_P(SessionTest, OperationsHoldTheirMemory) {
    Stamped large(*client_, 64 * kMiB, 4);
    Stamped source(*server_, 64 * kMiB, 5);
    const RemoteMemory from = seen_by(*client_, *server_, *source.local);
    const Work work = client_->read(large.all(), all_of(from)).value();
    const Status early = client_->deregister_memory(large.local);
    if (!work.is_complete()) {
        EXPECT_EQ(early.code(), StatusCode::kUnavailable) << early.to_string();
    }
    ASSERT_EQ(work.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(client_->deregister_memory(large.local).to_string(), "ok");
    EXPECT_EQ(client_->read(large.all(), all_of(from)).status().code(),
              StatusCode::kInvalidArgument);
}

TEST_P(SessionTest, MemoryIsLetGoThoughThePeerLeftBeforeAllNotificationsWereSent) {
    const auto owner = std::make_shared<int>();
    std::array<std::byte, 8> bytes{};
    auto local = client_->register_memory(bytes, owner).value();
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    // The server's program takes none of them, so that messages wait here at last.
    constexpr int kWrites = 20000;
    for (int i = 0; i < kWrites; ++i)
        ASSERT_TRUE(
            client_->write({local, {0, 8}}, {remote_, {0, 8}}, bytes_of("written")).is_ok());
    server_->close();
    local.reset();
    client_.reset();
    EXPECT_EQ(owner.use_count(), 1) << "something still holds the memory";
}

TEST_P(SessionTest, MemoryOfAnotherSessionIsNeitherEndedNorUsed) {
    const auto refused = [](const Status& status) {
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
        EXPECT_THAT(status.message(), HasSubstr("registered with another session"));
    };
    refused(client_->deregister_memory(theirs_.local));
    refused(client_->deregister_memory(nullptr));
    refused(client_->publish("theirs", theirs_.local));
    refused(client_->read(theirs_.all(), all_of(remote_)).status());
    Transfer transfer = client_->create_transfer("server").value();
    refused(transfer.post_recv(theirs_.all(), 1, test_deadline()).status());
    refused(transfer.post_send(theirs_.all(), 1, test_deadline()).status());
    ASSERT_TRUE(server_->publish("theirs", theirs_.local).is_ok());
    EXPECT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).to_string(), "ok");
}

TEST_P(SessionTest, MoreMemoryThanCanBeHadIsNotAllocated) {
    const std::uint64_t left = sys::memory_left().value().bytes;
    for (const std::uint64_t bytes : {left + left / 2, std::uint64_t{1} << 50, ~std::uint64_t{0}}) {
        const Status refused = client_->allocate(bytes).status();
        EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused.to_string();
    }
    // Half of it can be had once, and nobody has touched it then.
    auto half = client_->allocate(left / 5 * 3);
    ASSERT_TRUE(half.is_ok()) << half.status().to_string();
    EXPECT_EQ(client_->allocate(left / 5 * 3).status().code(), StatusCode::kResourceExhausted);
    ASSERT_TRUE(client_->deregister_memory(*half).is_ok());
    half = Status::internal("not any more");
    EXPECT_TRUE(client_->allocate(left / 5 * 3).is_ok());
}

class ServedTest : public Pair {
   protected:
    /// Reads and writes where nobody may.
    void attack_with(const std::string& name, const Extents& there, const Extents& here) {
        const auto plan = Plan::make({mine_.local, here}, {remote_, there});
        ASSERT_TRUE(plan.is_ok()) << name << ": " << plan.status().to_string();
        for (const auto op : {transport::RmaOp::kRead, transport::RmaOp::kWrite}) {
            const Status status = ended(client_->post(op, *plan));
            EXPECT_TRUE(status.code() == StatusCode::kUnavailable ||
                        status.code() == StatusCode::kInvalidArgument)
                << name << ": " << status.to_string();
            ++attempts_;
        }
    }
    /// One block; a list, whose first one is harmless; a run.
    void attack_in_each_form(const std::string& name, std::uint64_t offset) {
        attack_with(name, Extent{offset, 8}, Extent{0, 8});
        attack_with(name + ", listed", std::vector<Extent>{{0, 8}, {offset, 8}},
                    std::vector<Extent>{{0, 8}, {16, 8}});
        attack_with(name + ", in a run", StridedExtents{offset, 8, 0, 4},
                    StridedExtents{0, 8, 16, 4});
    }

    std::uint64_t attempts_ = 0;
};

TEST_P(ServedTest, ADescriptorOfMoreBytesThanThereAreIsNotBelieved) {
    remote_ = changed(remote_, [](auto& descriptor) { descriptor.bytes += kMiB; });
    const Status status = ended(client_->read({mine_.local, {0, 100}}, {remote_, {kBytes, 100}}));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
}

TEST_P(ServedTest, NoSessionServesWhatAnotherHasRegistered) {
    const auto other = session("other", GetParam());
    const Stamped its(*other, kBytes, 3);
    remote_ = forged(remote_, registered(*its.local).descriptor());
    const Status status = ended(client_->read(mine_.all(), all_of(remote_)));
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.to_string();
}

TEST_P(ServedTest, ARefusedRequestIsLoggedWithWhoRefusedIt) {
    testing::internal::CaptureStderr();
    remote_ = changed(remote_, [](auto& descriptor) { descriptor.nonce ^= 2; });
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).code(),
                  StatusCode::kUnavailable);
    ASSERT_EQ(server_->refused_requests(), 3U);
    server_->close();
    const std::string log = testing::internal::GetCapturedStderr();
    const std::regex line(
        "warning.*session \"server\" refused ([0-9]+) requests for memory that is not registered "
        "with it, or beyond it\n");
    int reported = 0;
    for (std::sregex_iterator each(log.begin(), log.end(), line); each != std::sregex_iterator();
         ++each)
        reported += std::stoi((*each)[1]);
    EXPECT_EQ(reported, 3) << log;
}

TEST_P(ServedTest, NoAttackOnMemoryGetsThrough) {
    const auto other = session("other", GetParam());
    const Stamped its(*other, kBytes, 3);
    Stamped freed(*server_, 4096, 5);
    const auto of_freed = registered(*freed.local).descriptor();
    ASSERT_EQ(server_->deregister_memory(freed.local).to_string(), "ok");
    struct Attack {
        std::string name;
        abi::MemoryDescriptor descriptor;
        std::uint64_t offset = 0;
    };
    std::vector<Attack> attacks;
    const auto forge = [&](const std::string& name, std::uint64_t offset, const auto& change) {
        Attack attack{name, registered(*theirs_.local).descriptor(), offset};
        change(attack.descriptor);
        attacks.push_back(attack);
    };
    forge("unregistered", 0, [](auto& d) { d.id += 1000; });
    forge("wrong key", 0, [](auto& d) { d.nonce ^= 2; });
    forge("no key", 0, [](auto& d) { d.nonce = 0; });
    forge("one beyond the end", kBytes - 7, [](auto& d) { d.bytes += 1; });
    forge("far beyond the end", 1ULL << 40, [](auto& d) { d.bytes = ~0ULL; });
    forge("wraps around", ~0ULL - 8, [](auto& d) { d.bytes = ~0ULL; });
    forge("wraps into it", ~0ULL - kBytes, [](auto& d) { d.bytes = ~0ULL; });
    attacks.push_back({"freed", of_freed});
    attacks.push_back({"another session's", registered(*its.local).descriptor()});
    const auto before = theirs_.bytes();
    const auto mine = mine_.bytes();
    for (const Attack& attack : attacks) {
        remote_ = forged(remote_, attack.descriptor);
        attack_in_each_form(attack.name, attack.offset);
    }
    // A run whose end comes back to where it began: only its count and stride lead astray.
    remote_ = forged(remote_, registered(*theirs_.local).descriptor());
    remote_ = changed(remote_, [](auto& descriptor) { descriptor.bytes = ~0ULL; });
    attack_with("wraps by its stride", StridedExtents{16, 8, 1ULL << 62, 4},
                StridedExtents{0, 8, 8, 4});
    EXPECT_EQ(theirs_.bytes(), before);
    EXPECT_EQ(mine_.bytes(), mine);
    EXPECT_EQ(attempts_, 9U * 3 * 2 + 2) << "each is one request";
    EXPECT_EQ(server_->refused_requests(), attempts_);
    EXPECT_EQ(client_->refused_requests(), 0U);
}

// Within a host it is the reader's own kernel that decides, which knows users alone.
INSTANTIATE_TEST_SUITE_P(Transports, ServedTest, testing::Values("tcp"),
                         [](const auto& test) { return test.param; });

TEST(SessionMemoryTest, AllocatedMemoryIsMappedByPeersOfTheHost) {
    const auto server = session("server", "shm");
    const auto client = session("client", "shm");
    const auto theirs = server->allocate(kMiB).value();
    const auto mine = client->allocate(kMiB).value();
    std::memset(theirs->data(), 0x5A, kMiB);
    const RemoteMemory remote = seen_by(*client, *server, *theirs);
    const Work work = client->read({mine, {0, kMiB}}, all_of(remote)).value();
    ASSERT_EQ(work.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(std::memcmp(mine->data(), theirs->data(), kMiB), 0);
    EXPECT_EQ(work.stats().path, "shm, mapped");
}

}  // namespace
}  // namespace pccl::p2p
