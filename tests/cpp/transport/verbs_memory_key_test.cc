// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/shm/memory_key.h"
#include "csrc/transport/verbs/memory_key.h"
#include "csrc/transport/verbs/port_choice.h"

namespace pccl::transport::verbs {
namespace {

const RemoteKey kRemote{.address = 0x7f0000001000, .devices = {1, 0xffffffff, 3}};

abi::MemoryDescriptor memory_with(const RemoteKey& key) {
    abi::MemoryDescriptor memory{};
    memory.id = 5;
    memory.nonce = 6;
    memory.bytes = 4096;
    EXPECT_TRUE(add_remote_key(memory, key).is_ok());
    return memory;
}

StatusCode code_of(const abi::MemoryDescriptor& memory) {
    return remote_key_of(memory).status().code();
}

TEST(VerbsMemoryKeyTest, AKeyComesBackAlsoThroughTheSerialisedDescriptor) {
    const abi::MemoryDescriptor memory = memory_with(kRemote);
    EXPECT_EQ(remote_key_of(memory).value(), kRemote);
    EXPECT_EQ(remote_key_of(parse_memory_descriptor(serialise(memory)).value()).value(), kRemote);
}

TEST(VerbsMemoryKeyTest, AKeyOfEachPortOfAProcessFitsBehindThatOfAGpuOnItsHost) {
    abi::MemoryDescriptor memory{};
    shm::MemoryKey of_gpu;
    of_gpu.gpu.emplace();
    ASSERT_TRUE(shm::add_key(memory, of_gpu).is_ok());
    const RemoteKey key{.address = 4096,
                        .devices = std::vector<std::uint32_t>(kMostPortsUsed, 0xffffffff)};
    ASSERT_TRUE(add_remote_key(memory, key).is_ok());
    EXPECT_EQ(remote_key_of(memory).value(), key);
}

TEST(VerbsMemoryKeyTest, MemoryWithoutAKeyIsUnsupported) {
    abi::MemoryDescriptor memory = memory_with(kRemote);
    memory.key_bytes = 0;
    memory.keys = {};
    EXPECT_EQ(code_of(memory), StatusCode::kUnsupported);
}

TEST(VerbsMemoryKeyTest, AKeyOfAnotherRegistrationIsUnavailable) {
    for (const auto change : {+[](abi::MemoryDescriptor& memory) { ++memory.id; },
                              +[](abi::MemoryDescriptor& memory) { ++memory.nonce; },
                              +[](abi::MemoryDescriptor& memory) { ++memory.bytes; },
                              +[](abi::MemoryDescriptor& memory) { --memory.bytes; }}) {
        abi::MemoryDescriptor memory = memory_with(kRemote);
        change(memory);
        EXPECT_EQ(code_of(memory), StatusCode::kUnavailable);
    }
}

TEST(VerbsMemoryKeyTest, NoChangedBitOfTheKeyIsTaken) {
    const abi::MemoryDescriptor memory = memory_with(kRemote);
    for (std::size_t bit = 0; bit < std::size_t{8} * memory.key_bytes; ++bit) {
        abi::MemoryDescriptor changed = memory;
        changed.keys[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
        EXPECT_NE(code_of(changed), StatusCode::kOk) << bit;
    }
}

TEST(VerbsMemoryKeyTest, MalformedKeysAreInvalid) {
    EXPECT_EQ(code_of(memory_with({.address = 4096, .devices = {}})), StatusCode::kInvalidArgument);
    EXPECT_EQ(code_of(memory_with({.address = ~std::uint64_t{0} - 100, .devices = {1}})),
              StatusCode::kInvalidArgument);
    const std::vector<std::uint32_t> too_many(RemoteKey::kMostDevices + 1, 1);
    EXPECT_EQ(code_of(memory_with({.address = 4096, .devices = too_many})),
              StatusCode::kInvalidArgument);
    abi::MemoryDescriptor odd{};
    odd.nonce = 1;
    ASSERT_TRUE(add_key(odd, TransportKind::kVerbs, "0123456789abcdefghi").is_ok());
    EXPECT_EQ(code_of(odd), StatusCode::kInvalidArgument);
}

TEST(VerbsMemoryKeyTest, ASecondKeyIsRefused) {
    abi::MemoryDescriptor memory = memory_with(kRemote);
    EXPECT_EQ(add_remote_key(memory, kRemote).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pccl::transport::verbs
