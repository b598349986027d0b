// SPDX-License-Identifier: Apache-2.0

// Who may say whom to trust.
#include "csrc/capsule/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace pccl::capsule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TrustedKeysTest : public ::testing::Test {
   protected:
    TrustedKeysTest() { std::filesystem::create_directory(folder_); }
    ~TrustedKeysTest() override { std::filesystem::remove_all(folder_); }
    TrustedKeysTest(const TrustedKeysTest&) = delete;
    TrustedKeysTest& operator=(const TrustedKeysTest&) = delete;

    void write(const std::string& content, mode_t mode = 0644) const {
        std::ofstream(path_, std::ios::binary) << content;
        ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    }
    [[nodiscard]] std::string refusal() const {
        const Status status = TrustedKeys::read(path_).status();
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(), HasSubstr(path_));
        return status.message();
    }

    const std::string folder_ = ::testing::TempDir() + "pccl-keys-" + std::to_string(::getpid());
    const std::string path_ = folder_ + "/keys";
    const std::string key_ =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa somebody\n";
};

TEST_F(TrustedKeysTest, AreThoseOfAFileThatNobodyElseMayWrite) {
    write("# ours\n" + key_);
    EXPECT_TRUE(TrustedKeys::read(path_).is_ok());
    // As a mounted volume has them.
    std::filesystem::create_symlink("keys", folder_ + "/link");
    EXPECT_TRUE(TrustedKeys::read(folder_ + "/link").is_ok());
}

TEST_F(TrustedKeysTest, OfAFileThatOthersMayWriteAreRefused) {
    for (const mode_t mode : {0666, 0664, 0646, 0622}) {
        write(key_, mode);
        EXPECT_THAT(refusal(), AllOf(HasSubstr("written to"), HasSubstr("chmod")));
    }
}

TEST_F(TrustedKeysTest, OfWhatIsNoFileOrHasNoneAreRefused) {
    EXPECT_THAT(refusal(), HasSubstr("No such file"));
    write("# nobody\n\n");
    EXPECT_THAT(refusal(), HasSubstr("has no key"));
    write("", 0600);
    EXPECT_THAT(refusal(), HasSubstr("has no key"));
    write(std::string(70'000, '\n') + key_);
    EXPECT_THAT(refusal(), HasSubstr("more than 65536 bytes"));
    std::filesystem::remove(path_);
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    EXPECT_THAT(refusal(), HasSubstr("no regular file"));
    std::filesystem::remove(path_);
    std::filesystem::create_directory(path_);
    EXPECT_THAT(refusal(), HasSubstr("no regular file"));
}

}  // namespace
}  // namespace pccl::capsule
