// SPDX-License-Identifier: Apache-2.0

// Texts that differ little come back whole, from few bytes; others are refused.
#include "csrc/bootstrap/front_coding.h"

#include <gtest/gtest.h>

#include <random>

#include "csrc/base/text/text.h"

namespace pccl::bootstrap {
namespace {

constexpr std::size_t kLongest = 1'000;

std::string written(const std::vector<std::string>& texts) {
    ByteWriter out;
    write_front_coded(texts, out);
    return out.take();
}

Result<std::vector<std::string>> read(const std::string& bytes, std::size_t count) {
    ByteReader in(bytes);
    std::vector<std::string> texts;
    PCCL_TRY(read_front_coded(in, count, kLongest, [&](std::string_view text) {
        texts.emplace_back(text);
        return Status::ok();
    }));
    PCCL_TRY(in.finish());
    return texts;
}

TEST(FrontCodingTest, ComeBackWhole) {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::string> texts;
        std::string text(random() % 300, 'x');
        for (auto i = random() % 20; i > 0; --i) {
            if (random() % 3 == 0) text.resize(random() % (kLongest + 1), 'y');
            for (auto change = random() % 9; change > 0 && !text.empty(); --change)
                text[random() % text.size()] = static_cast<char>(random() % 256);
            texts.push_back(text);
        }
        const auto found = read(written(texts), texts.size());
        ASSERT_TRUE(found.is_ok()) << found.status().to_string();
        EXPECT_EQ(*found, texts);
    }
}

TEST(FrontCodingTest, NumbersInLongTextsTakeFewBytes) {
    std::vector<std::string> texts;
    for (int i = 0; i < 1'000; ++i)
        texts.push_back(concat(std::string(200, 'h'), 100'000 + i, std::string(100, 't')));
    EXPECT_LT(written(texts).size(), texts.size() * 12 + 400);
}

TEST(FrontCodingTest, MalformedBytesAreRefused) {
    const std::string right = written({"abcdef", "abcxef"});
    for (std::size_t bytes = 0; bytes < right.size(); ++bytes)
        EXPECT_EQ(read(right.substr(0, bytes), 2).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(read(written({std::string(kLongest + 1, 'x')}), 1).status().code(),
              StatusCode::kInvalidArgument);
    ByteWriter behind;
    for (const int number : {4, 1, 3, 2}) behind.u16(static_cast<std::uint16_t>(number));
    behind.u16(0);
    EXPECT_EQ(read(behind.take(), 1).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pccl::bootstrap
