#include "csrc/comm/secret_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace pccl::comm {
namespace {

std::string file_of(const std::string& content) {
    const std::string path = testing::TempDir() + "pccl-secret";
    std::ofstream(path, std::ios::binary) << content;
    return path;
}

TEST(SecretFileTest, GroupsGetDifferentSecretsAndRanksTheSame) {
    const std::string path = file_of("sixteen bytes or more");
    const auto first = secret_from_file(path, {1});
    const auto again = secret_from_file(path, {1});
    const auto second = secret_from_file(path, {2});
    ASSERT_TRUE(first.is_ok() && again.is_ok() && second.is_ok());
    EXPECT_EQ(*first, *again);
    EXPECT_NE(*first, *second);
}

TEST(SecretFileTest, OtherContentIsAnotherSecret) {
    const auto first = secret_from_file(file_of("sixteen bytes or more"), {1});
    const auto second = secret_from_file(file_of("Sixteen bytes or more"), {1});
    ASSERT_TRUE(first.is_ok() && second.is_ok());
    EXPECT_NE(*first, *second);
}

TEST(SecretFileTest, RefusesFilesThatAreMissingShortOrLong) {
    for (const std::string& path : {file_of("").append("-missing"), file_of("short")}) {
        const auto secret = secret_from_file(path, {1});
        EXPECT_EQ(secret.status().code(), StatusCode::kInvalidArgument);
        EXPECT_NE(secret.status().message().find(path), std::string::npos);
    }
    EXPECT_FALSE(secret_from_file(file_of(std::string(4097, 'x')), {1}).is_ok());
    EXPECT_TRUE(secret_from_file(file_of(std::string(4096, 'x')), {1}).is_ok());
}

}  // namespace
}  // namespace pccl::comm
