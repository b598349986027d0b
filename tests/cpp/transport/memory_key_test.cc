// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/memory_key.h"

#include <gtest/gtest.h>

#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/shm/rma.h"

namespace pccl::transport {
namespace {

/// A registration of a page that peers can map.
class ShmKeyTest : public testing::Test {
   protected:
    abi::MemoryDescriptor described(const shm::MemoryKey& key) {
        abi::MemoryDescriptor memory = registration_->descriptor();
        memory.key_bytes = 0;
        EXPECT_TRUE(shm::add_key(memory, key).is_ok());
        return memory;
    }
    [[nodiscard]] shm::MemoryKey key() const {
        return shm::key_on_this_host(registration_->descriptor()).value();
    }

    Mapping mapping_ = Mapping::shareable("test", 8192).value();
    std::unique_ptr<shm::ShmRma> rma_ = shm::ShmRma::create().value();
    std::unique_ptr<Registration> registration_ =
        rma_->add({.data = mapping_.memory().data() + 5000,
                   .bytes = 100,
                   .file = mapping_.file(),
                   .file_offset = 5000})
            .value();
};

TEST_F(ShmKeyTest, AViewShowsTheMemoryItself) {
    const auto view = shm::map_memory(registration_->descriptor());
    ASSERT_TRUE(view.is_ok()) << view.status().to_string();
    EXPECT_EQ(view->memory.size(), 100U);
    mapping_.memory()[5000] = std::byte{1};
    mapping_.memory()[5099] = std::byte{2};
    EXPECT_EQ(view->memory.front(), std::byte{1});
    EXPECT_EQ(view->memory.back(), std::byte{2});
}

TEST_F(ShmKeyTest, MemoryThatIsElsewhereOrGoneIsUnsupported) {
    const auto code_of = [this](auto change) {
        shm::MemoryKey wrong = key();
        change(wrong);
        return shm::map_memory(described(wrong)).status().code();
    };
    EXPECT_EQ(code_of([](auto& key) { key.host += 1; }), StatusCode::kUnsupported);
    EXPECT_EQ(code_of([](auto& key) { key.file = 0; }), StatusCode::kUnsupported) << "another file";
    EXPECT_EQ(code_of([](auto& key) { key.inode += 1; }), StatusCode::kUnsupported)
        << "a descriptor that was used again";
    EXPECT_EQ(code_of([](auto& key) { key.file = -1; }), StatusCode::kUnsupported) << "no file";
    EXPECT_EQ(code_of([](auto& key) { key.ledger.pid = 1 << 30; }), StatusCode::kUnsupported)
        << "no such process";
    abi::MemoryDescriptor none{};
    EXPECT_EQ(shm::key_on_this_host(none).status().code(), StatusCode::kUnsupported);
}

TEST_F(ShmKeyTest, KeysThatCannotBeAreInvalid) {
    const auto code_of = [this](auto change) {
        shm::MemoryKey wrong = key();
        change(wrong);
        return shm::map_memory(described(wrong)).status().code();
    };
    constexpr auto kInvalid = StatusCode::kInvalidArgument;
    EXPECT_EQ(code_of([](auto& key) { key.address = ~std::uint64_t{0} - 50; }), kInvalid);
    EXPECT_EQ(code_of([](auto& key) { key.offset = ~std::uint64_t{0} - 50; }), kInvalid);
    EXPECT_EQ(code_of([](auto& key) { key.offset = 8100; }), kInvalid) << "longer than the file";
    EXPECT_EQ(code_of([](auto& key) { key.file = -2; }), kInvalid);
    EXPECT_EQ(code_of([](auto& key) { key.ledger.file = -1; }), kInvalid);
    EXPECT_EQ(code_of([](auto& key) { key.ledger.pid = 0; }), kInvalid);
    EXPECT_EQ(code_of([](auto& key) { key.line = shm::Ledger::kLines; }), kInvalid);
    abi::MemoryDescriptor cut = registration_->descriptor();
    --cut.key_bytes;
    --cut.keys[1];
    EXPECT_EQ(shm::key_on_this_host(cut).status().code(), kInvalid);
}

}  // namespace
}  // namespace pccl::transport
