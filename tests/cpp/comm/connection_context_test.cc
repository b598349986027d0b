// SPDX-License-Identifier: Apache-2.0

// Links of an older or a newer generation of the network.
#include "csrc/comm/links/connection_context.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/runtime/runtime.h"
#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

using transport::TransportKind;

class AnyLink final : public transport::RecvLink {
   public:
    explicit AnyLink(TransportKind kind) : kind_(kind) {}
    [[nodiscard]] TransportKind kind() const override { return kind_; }
    Result<transport::Bytes> peek(ChannelId) override { return transport::Bytes{}; }
    void consume(ChannelId, std::size_t) override {}
    Result<std::size_t> receive(ChannelId, transport::MutableBytes) override {
        return std::size_t{0};
    }
    void abort(const Status&) override {}

   private:
    const TransportKind kind_;
};

class GenerationTest : public ::testing::Test {
   protected:
    transport::RecvLink* accept(std::uint32_t generation,
                                TransportKind kind = TransportKind::kTcp) {
        auto link = std::make_unique<AnyLink>(kind);
        auto* const offered = link.get();
        links_.accepted({.group = {}, .source = 1, .destination = 0, .generation = generation},
                        std::move(link));
        return offered;
    }
    transport::RecvLink* link() { return links_.receive_link({1, 0}); }

    std::shared_ptr<runtime::Runtime> runtime_ =
        runtime::Runtime::create(TransportKind::kTcp).value();
    const runtime::PeerDirectory peers_{*runtime_, {}, {.rank = 0, .size = 2}};
    ConnectionContext links_{*runtime_, peers_};
};

TEST_F(GenerationTest, LinksOfAnOlderOneAreReleasedAndRefused) {
    const auto* const first = accept(0);
    EXPECT_EQ(link(), first);
    links_.renew(1);
    EXPECT_EQ(link(), nullptr);
    accept(0);
    EXPECT_EQ(link(), nullptr);
    const auto* const second = accept(1);
    EXPECT_EQ(link(), second);
}

TEST_F(GenerationTest, LinksOfANewerOneWaitUntilThisRankIsThere) {
    const auto* const early = accept(2);
    EXPECT_EQ(link(), nullptr);
    links_.renew(1);
    EXPECT_EQ(link(), nullptr);
    links_.renew(2);
    EXPECT_EQ(link(), early);
}

TEST_F(GenerationTest, SharedMemoryHasNone) {
    const auto* const near = accept(0, TransportKind::kShm);
    links_.renew(1);
    EXPECT_EQ(link(), near);
}

}  // namespace
}  // namespace pccl::comm
