// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/memory_descriptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "csrc/transport/shm/memory_key.h"

namespace pccl::transport {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

abi::MemoryDescriptor sample() {
    abi::MemoryDescriptor memory{};
    memory.id = 0x1122'3344'5566'7788;
    memory.nonce = 0x99AA'BBCC'DDEE'FF01;
    memory.bytes = 5'000'000'000;
    EXPECT_TRUE(add_key(memory, TransportKind::kVerbs, "rkey").is_ok());
    EXPECT_TRUE(add_key(memory, TransportKind::kNvlink, std::string(64, 'h')).is_ok());
    return memory;
}

TEST(MemoryDescriptorTest, SurvivesTheTrip) {
    const auto after = parse_memory_descriptor(serialise(sample()));
    ASSERT_TRUE(after.is_ok()) << after.status().to_string();
    EXPECT_EQ(*after, sample());
    EXPECT_EQ(key_of(*after, TransportKind::kVerbs), "rkey");
    EXPECT_EQ(key_of(*after, TransportKind::kNvlink), std::string(64, 'h'));
    EXPECT_FALSE(key_of(*after, TransportKind::kShm));
}

TEST(MemoryDescriptorTest, StaysBelow256BytesWhenItsKeysAreFull) {
    abi::MemoryDescriptor memory = sample();
    const std::string rest(abi::kMemoryKeyBytes - memory.key_bytes - 2, 'x');
    EXPECT_EQ(add_key(memory, TransportKind::kTcp, rest + "x").code(),
              StatusCode::kResourceExhausted);
    ASSERT_TRUE(add_key(memory, TransportKind::kTcp, rest).is_ok());
    EXPECT_LT(serialise(memory).size(), 256U);
    const auto after = parse_memory_descriptor(serialise(memory));
    ASSERT_TRUE(after.is_ok()) << after.status().to_string();
    EXPECT_EQ(key_of(*after, TransportKind::kTcp), rest);
    EXPECT_EQ(add_key(memory, TransportKind::kTcp, "").code(), StatusCode::kInvalidArgument)
        << "there is a key of it";
}

TEST(MemoryDescriptorTest, OtherVersionsAreRefusedInOneLine) {
    std::string later = serialise(sample());
    later[2] = 3;
    const std::string first("\x40\x3e\x00\x10\x00\x00\xff\x7f", 8);  // as version 1 began
    for (const auto& [bytes, version] : {std::pair{later, "version 3"}, {first, "version 1"}}) {
        const Status status = parse_memory_descriptor(bytes).status();
        EXPECT_EQ(status.code(), StatusCode::kUnsupported);
        EXPECT_THAT(status.message(), AllOf(HasSubstr(version), HasSubstr("reads version 2"),
                                            testing::Not(HasSubstr("\n"))));
    }
}

TEST(MemoryDescriptorTest, ImpossibleValuesAreRefused) {
    const auto why_not = [](auto change) {
        abi::MemoryDescriptor memory = sample();
        change(memory);
        return parse_memory_descriptor(serialise(memory)).status().message();
    };
    EXPECT_THAT(why_not([](auto& memory) { memory.nonce = 0; }), HasSubstr("nonce"));
    EXPECT_THAT(why_not([](auto& memory) { memory.bytes = ~std::uint64_t{0}; }),
                HasSubstr("18446744073709551615 bytes"));
    EXPECT_THAT(why_not([](auto& memory) { memory.kind = static_cast<abi::MemoryKind>(2); }),
                HasSubstr("kind of memory 2"));
    EXPECT_THAT(why_not([](auto& memory) { memory.keys[0] = 6; }), HasSubstr("transport 6"));
    EXPECT_THAT(why_not([](auto& memory) { memory.keys[0] = memory.keys[6]; }),
                HasSubstr("two keys of transport nvlink"));
    EXPECT_THAT(why_not([](auto& memory) { memory.keys[7] = 65; }), HasSubstr("65 bytes where 64"));
    EXPECT_THAT(why_not([](auto& memory) { ++memory.key_bytes; }), HasSubstr("without a length"));
}

TEST(MemoryDescriptorTest, EveryDamageIsNoticed) {
    const std::string whole = serialise(sample());
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
        EXPECT_FALSE(parse_memory_descriptor(damaged).is_ok()) << at;
        EXPECT_FALSE(parse_memory_descriptor(whole.substr(0, at)).is_ok()) << at;
    }
    EXPECT_FALSE(parse_memory_descriptor(whole + "x").is_ok());
}

TEST(MemoryDescriptorTest, RandomBytesGiveAStatus) {
    std::mt19937 random(11);
    for (int round = 0; round < 20'000; ++round) {
        std::string bytes =
            round % 2 == 0 ? serialise(sample()) : std::string(random() % 300, '\0');
        for (std::size_t hits = 1 + random() % 6; hits > 0 && !bytes.empty(); --hits)
            bytes[random() % bytes.size()] = static_cast<char>(random());
        const auto result = parse_memory_descriptor(bytes);
        if (result.is_ok()) {
            ASSERT_EQ(serialise(*result), bytes);
        }
    }
}

}  // namespace
}  // namespace pccl::transport
