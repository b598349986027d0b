// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/ledger.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "csrc/sys/process_memory.h"
#include "csrc/transport/shm/rma.h"
#include "tests/fakes/forked_child.h"

namespace pccl::transport::shm {
namespace {

constexpr std::uint64_t kNonce = 0x5EED'0000'1234'5678;

class LedgerTest : public testing::Test {
   protected:
    PeerLine line(std::uint32_t number) { return PeerLine::map(ledger_->file(), number).value(); }
    std::shared_ptr<Ledger> ledger_ = Ledger::create().value();
};

TEST_F(LedgerTest, ALineIsOpenUntilItIsEnded) {
    const std::uint32_t number = ledger_->open(kNonce).value();
    const PeerLine seen = line(number);
    EXPECT_TRUE(seen.is_open(kNonce));
    EXPECT_FALSE(seen.is_open(kNonce + 1));
    EXPECT_TRUE(seen.enter(kNonce));
    EXPECT_TRUE(seen.leave(kNonce));
    ledger_->end(number);
    EXPECT_FALSE(seen.is_open(kNonce));
    EXPECT_FALSE(seen.enter(kNonce));
    EXPECT_TRUE(ledger_->await_no_writers(number, {}));
}

TEST_F(LedgerTest, ALineThatIsUsedAgainIsNotTheOldOne) {
    const std::uint32_t first = ledger_->open(kNonce).value();
    ledger_->end(first);
    ledger_->give_back(first);
    const std::uint32_t second = ledger_->open(kNonce + 1).value();
    EXPECT_EQ(second, first);
    EXPECT_FALSE(line(first).enter(kNonce));
    EXPECT_TRUE(line(first).is_open(kNonce + 1));
}

TEST_F(LedgerTest, AnEndIsAwaitedWhileWritersAreInThere) {
    const std::uint32_t number = ledger_->open(kNonce).value();
    const PeerLine writer = line(number);
    ASSERT_TRUE(writer.enter(kNonce));
    ledger_->end(number);
    EXPECT_FALSE(ledger_->await_no_writers(number, std::chrono::milliseconds(20)));
    std::atomic<bool> have_left{false};
    std::thread owner(
        [&] { have_left = ledger_->await_no_writers(number, Ledger::kWriterTimeout); });
    EXPECT_FALSE(writer.leave(kNonce)) << "it has ended meanwhile";
    owner.join();
    EXPECT_TRUE(have_left);
}

TEST_F(LedgerTest, ALineIsNotUsedAgainBeforeItsWriterHasLeft) {
    const std::uint32_t number = ledger_->open(kNonce).value();
    const PeerLine writer = line(number);
    ASSERT_TRUE(writer.enter(kNonce));
    ledger_->end(number);
    ledger_->give_back(number);
    EXPECT_NE(ledger_->open(kNonce).value(), number);
    EXPECT_FALSE(writer.leave(kNonce));
    EXPECT_EQ(ledger_->open(kNonce).value(), number);
}

TEST_F(LedgerTest, ALineWhoseWriterWasKilledIsNotUsedAgain) {
    const std::uint32_t number = ledger_->open(kNonce).value();
    fakes::ForkedChild writer([&] { return line(number).enter(kNonce) ? 0 : 1; });
    ASSERT_EQ(writer.join(), 0);
    ledger_->end(number);
    ledger_->give_back(number);
    EXPECT_FALSE(line(number).is_open(kNonce));
    EXPECT_NE(ledger_->open(kNonce).value(), number);
}

TEST_F(LedgerTest, AGateThatIsShutIsReplacedForLinesThatAreOpen) {
    const std::uint32_t ended = ledger_->open(kNonce).value();
    const std::uint32_t open = ledger_->open(kNonce + 1).value();
    const std::uint64_t before = line(open).gate();
    EXPECT_EQ(line(ended).gate(), before);
    ledger_->end(ended);
    ASSERT_TRUE(ledger_->shut_gate().is_ok());
    EXPECT_EQ(line(ended).gate(), before);
    EXPECT_NE(line(open).gate(), before);
    EXPECT_FALSE(sys::write_living_process(::getpid(), {before}, {}).value());
    EXPECT_TRUE(sys::write_living_process(::getpid(), {line(open).gate()}, {}).value());
}

TEST_F(LedgerTest, AChildOfForkEndsNothingOfItsParent) {
    std::vector<std::byte> memory(10);
    const auto rma = ShmRma::create().value();
    auto registration = rma->add({.data = memory.data(), .bytes = memory.size()}).value();
    fakes::ForkedChild child([&] {
        registration.reset();
        return 0;
    });
    ASSERT_EQ(child.join(), 0);
    const MemoryKey key = key_on_this_host(registration->descriptor()).value();
    const PeerLine seen = PeerLine::map(key.ledger, key.line).value();
    EXPECT_TRUE(seen.is_open(registration->descriptor().nonce));
}

TEST_F(LedgerTest, LinesAreLimited) {
    for (std::size_t i = 0; i < Ledger::kLines; ++i) ASSERT_TRUE(ledger_->open(kNonce).is_ok());
    EXPECT_EQ(ledger_->open(kNonce).status().code(), StatusCode::kResourceExhausted);
    ledger_->end(77);
    ledger_->give_back(77);
    EXPECT_EQ(ledger_->open(kNonce).value(), 77U);
}

}  // namespace
}  // namespace pccl::transport::shm
