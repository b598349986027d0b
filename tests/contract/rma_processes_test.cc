// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>

#include "tests/contract/rma_contract.h"

namespace pccl::transport::contract {
namespace {

TEST_P(RmaProcesses, ReadsOfAProcessThatIsKilledFailOrAreWhole) {
    start(
        [](RmaEnd& end, const abi::MemoryDescriptor&) { static_cast<void>(end.link->advance()); });
    const auto look = [this] {
        EXPECT_TRUE(are_all(mine_->bytes(), kOld));
        std::ranges::fill(mine_->bytes(), kNew);
    };
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(transfer(RmaOp::kRead, *mine_, theirs_).to_string(), "ok");
        look();
    }
    std::thread killer([this] { kill(); });
    repeat_until_refused(RmaOp::kRead, *mine_, theirs_, look);
    killer.join();
    for (const RmaOp op : {RmaOp::kRead, RmaOp::kWrite})
        EXPECT_EQ(transfer(op, *mine_, theirs_).code(), StatusCode::kPeerLost) << "it sticks";
    EXPECT_EQ(next_completion(*initiator().link, [] {}).status().code(), StatusCode::kPeerLost);
    initiator().link.reset();
    EXPECT_EQ(gpus().opened(), 0U);
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
