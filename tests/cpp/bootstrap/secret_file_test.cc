// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/secret_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace pccl::bootstrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SecretFileTest : public testing::Test {
   protected:
    SecretFileTest() {
        std::filesystem::create_directory(folder_);
        write("sixteen bytes or more");
    }
    ~SecretFileTest() override { std::filesystem::remove_all(folder_); }
    SecretFileTest(const SecretFileTest&) = delete;
    SecretFileTest& operator=(const SecretFileTest&) = delete;

    void write(const std::string& content) const {
        std::ofstream(path_, std::ios::binary) << content;
        set_mode(0600);
    }
    void set_mode(mode_t mode) const { ASSERT_EQ(::chmod(path_.c_str(), mode), 0); }

    [[nodiscard]] Result<transport::Secret> secret(std::uint8_t group = 1) const {
        return secret_from_file(path_, {group});
    }
    /// Why the file is refused.
    [[nodiscard]] std::string refusal() const {
        const Status status = secret().status();
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(), HasSubstr(path_));
        EXPECT_EQ(status.message().find('\n'), std::string::npos);
        return status.message();
    }

    const std::string folder_ = testing::TempDir() + "pccl-secret-" + std::to_string(::getpid());
    const std::string path_ = folder_ + "/key";
};

TEST_F(SecretFileTest, GroupsGetDifferentSecretsAndRanksTheSame) {
    const auto first = secret(1);
    const auto again = secret(1);
    const auto second = secret(2);
    ASSERT_TRUE(first.is_ok() && again.is_ok() && second.is_ok());
    EXPECT_EQ(*first, *again);
    EXPECT_NE(*first, *second);
}

TEST_F(SecretFileTest, OtherContentIsAnotherSecret) {
    const auto first = secret();
    write("Sixteen bytes or more");
    const auto second = secret();
    ASSERT_TRUE(first.is_ok() && second.is_ok());
    EXPECT_NE(*first, *second);
}

TEST_F(SecretFileTest, RefusesFilesThatAreMissingShortOrLong) {
    write(std::string(4097, 'x'));
    EXPECT_THAT(refusal(), HasSubstr("16 to 4096 bytes"));
    write("short");
    EXPECT_THAT(refusal(), HasSubstr("16 to 4096 bytes"));
    ::unlink(path_.c_str());
    EXPECT_THAT(refusal(), HasSubstr("No such file"));
    write(std::string(4096, 'x'));
    EXPECT_TRUE(secret().is_ok());
}

TEST_F(SecretFileTest, RefusesWhatOthersMayReadOrWrite) {
    for (const auto& [mode, what] :
         std::initializer_list<std::pair<mode_t, const char*>>{{0640, "read"},
                                                               {0604, "read"},
                                                               {0644, "read"},
                                                               {0620, "written to"},
                                                               {0602, "written"}}) {
        set_mode(mode);
        EXPECT_THAT(refusal(),
                    AllOf(HasSubstr(what), HasSubstr("by other users"), HasSubstr("chmod 600")));
    }
    set_mode(0644);
    EXPECT_THAT(refusal(), HasSubstr("(mode 0644)"));
    for (const mode_t mode : {0600U, 0400U}) {
        set_mode(mode);
        EXPECT_TRUE(secret().is_ok());
    }
}

TEST_F(SecretFileTest, RefusesAFileOfAnotherUser) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
    ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
    EXPECT_THAT(refusal(), HasSubstr("belongs to user 65534"));
}

TEST_F(SecretFileTest, RootMayGiveOneToAGroup) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root has files of root's";
    constexpr uid_t kNobody = 65534;
    ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
    ASSERT_EQ(::chown(path_.c_str(), 0, ::getegid()), 0);
    set_mode(0640);
    ASSERT_EQ(::seteuid(kNobody), 0);
    const auto of_group = secret();
    ASSERT_EQ(::seteuid(0), 0);
    EXPECT_TRUE(of_group.is_ok()) << of_group.status().to_string();
    set_mode(0644);
    ASSERT_EQ(::seteuid(kNobody), 0);
    const auto of_all = secret();
    ASSERT_EQ(::seteuid(0), 0);
    EXPECT_THAT(of_all.status().message(),
                AllOf(HasSubstr("read by other users"), HasSubstr("chmod 640")));
}

TEST_F(SecretFileTest, FollowsALinkAndJudgesWhatItLeadsTo) {
    const std::string target = folder_ + "/target";
    std::filesystem::rename(path_, target);
    ASSERT_EQ(::symlink(target.c_str(), path_.c_str()), 0);
    EXPECT_TRUE(secret().is_ok());
    ASSERT_EQ(::chmod(target.c_str(), 0644), 0);
    EXPECT_THAT(refusal(), HasSubstr("read by other users"));
}

TEST_F(SecretFileTest, NeitherWaitsForAPipeNorReadsAFolder) {
    ::unlink(path_.c_str());
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    EXPECT_THAT(refusal(), HasSubstr("no regular file"));
    ::unlink(path_.c_str());
    std::filesystem::create_directory(path_);
    EXPECT_THAT(refusal(), HasSubstr("no regular file"));
}

}  // namespace
}  // namespace pccl::bootstrap
