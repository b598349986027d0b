#include <algorithm>
#include <thread>

#include "tests/contract/rma_contract.h"

namespace pccl::transport::contract {
namespace {

TEST_P(RmaProcesses, ReadsOfAProcessThatIsKilledFailOrAreWhole) {
    start(
        [](RmaEnd& end, const abi::MemoryDescriptor&) { static_cast<void>(end.link->advance()); });
    const RmaPiece piece{.local = mine_->registration(), .remote = &theirs_, .bytes = kBytes};
    std::thread killer;
    Status last;
    for (int reads = 0; last.is_ok(); ++reads) {
        std::ranges::fill(mine_->bytes(), kNew);
        const auto taken = initiator().link->post(RmaOp::kRead, {&piece, 1}, 1);
        if (!taken.is_ok()) {
            last = taken.status();
            break;
        }
        if (reads == 3) killer = std::thread([this] { kill(); });
        const auto told = next_completion(*initiator().link, [] {});
        ASSERT_TRUE(told.is_ok()) << told.status().to_string();
        last = told->status;
        if (last.is_ok()) {
            ASSERT_TRUE(are_all(mine_->bytes(), kOld));
        } else {
            ASSERT_GT(reads, 2) << last.to_string();
        }
    }
    killer.join();
    EXPECT_EQ(last.code(), StatusCode::kPeerLost) << last.to_string();
    EXPECT_EQ(next_completion(*initiator().link, [] {}).status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(initiator().link->post(RmaOp::kWrite, {&piece, 1}, 2).status().code(),
              StatusCode::kPeerLost);
}

TEST_P(RmaProcesses, AProcessThatIsKilledWhileItWritesHoldsNoRegistrationUp) {
    start([](RmaEnd& end, const abi::MemoryDescriptor& parents) {
        const Registered from = end.memory(kBytes);
        std::ranges::fill(from.bytes(), kOld);
        const RmaPiece piece{.local = from.registration(), .remote = &parents, .bytes = kBytes};
        for (;;) {
            static_cast<void>(end.link->post(RmaOp::kWrite, {&piece, 1}, 1));
            static_cast<void>(next_completion(*end.link, [] {}));
        }
    });
    ASSERT_TRUE(eventually(initiator().process->waiter(), [&] {
        static_cast<void>(initiator().link->advance());
        return static_cast<const volatile std::byte&>(mine_->bytes().back()) == kOld;
    })) << "nothing was written";
    kill();
    mine_->end();
    std::ranges::fill(mine_->bytes(), kNew);
    for (int i = 0; i < 100; ++i) static_cast<void>(initiator().link->advance());
    EXPECT_TRUE(are_all(mine_->bytes(), kNew));
}

}  // namespace
}  // namespace pccl::transport::contract
