// Which life of a session is the one meant.
#include "csrc/p2p/lives.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>

namespace pccl::p2p {
namespace {

using testing::HasSubstr;

ConnectionInfo life(std::uint64_t incarnation, const std::string& name = "server") {
    ConnectionInfo info;
    info.id = {.name = name, .incarnation = incarnation};
    return info;
}

TEST(LivesTest, TheLastOneThatWasLoadedOrGreetedIsMeant) {
    Lives lives;
    EXPECT_EQ(lives.find("server"), nullptr);
    lives.load(life(1));
    EXPECT_EQ(lives.find("server")->id, life(1).id);
    EXPECT_EQ(lives.greet(life(2)).to_string(), "ok");
    EXPECT_EQ(lives.find("server")->id, life(2).id);
    lives.load(life(3));
    EXPECT_EQ(lives.find("server")->id, life(3).id);
    EXPECT_EQ(lives.greet(life(3)).to_string(), "ok") << "again";
    EXPECT_EQ(lives.find("other"), nullptr);
}

TEST(LivesTest, ADisplacedOneGreetsInVainUnlessTheProgramLoadsIt) {
    Lives lives;
    lives.load(life(1));
    lives.load(life(2));
    for (int i = 0; i < 2; ++i) {
        const Status refused = lives.greet(life(1));
        EXPECT_EQ(refused.code(), StatusCode::kAborted);
        EXPECT_THAT(refused.message(), HasSubstr("session \"server\" was displaced"));
        EXPECT_EQ(lives.find("server")->id, life(2).id);
    }
    lives.load(life(1));
    EXPECT_EQ(lives.greet(life(1)).to_string(), "ok");
    EXPECT_EQ(lives.greet(life(2)).code(), StatusCode::kAborted);
}

TEST(LivesTest, NamesAreApartAndTheLastDisplacedOnesOfEachAreKept) {
    Lives lives;
    lives.load(life(1, "other"));
    lives.load(life(2, "other"));
    for (std::uint64_t each = 0; each < 10 * Lives::kMostDisplaced; ++each) lives.load(life(each));
    EXPECT_EQ(lives.greet(life(10 * Lives::kMostDisplaced - 2)).code(), StatusCode::kAborted);
    EXPECT_EQ(lives.greet(life(9 * Lives::kMostDisplaced - 1)).code(), StatusCode::kAborted);
    EXPECT_EQ(lives.greet(life(1, "other")).code(), StatusCode::kAborted);
    EXPECT_EQ(lives.greet(life(2)).to_string(), "ok") << "so long ago that it is forgotten";
}

ConnectionInfo reachable(std::uint64_t incarnation, const std::string& name) {
    ConnectionInfo info = life(incarnation, name);
    info.process = {.host = "node7", .pid = 812};
    info.secret.fill(7);
    return info;
}

TEST(LivesTest, OfOneThatHasCalledAndGoneNeitherSecretNorAddressStays) {
    Lives lives;
    ASSERT_TRUE(lives.greet(reachable(1, "guest")).is_ok());
    EXPECT_FALSE(lives.cannot_be_called("guest"));
    EXPECT_EQ(lives.rest("guest"), std::nullopt);
    EXPECT_TRUE(lives.cannot_be_called("guest"));
    EXPECT_EQ(lives.find("guest")->id, life(1, "guest").id);
    EXPECT_EQ(lives.find("guest")->process.pid, 812);
    EXPECT_EQ(lives.find("guest")->secret, transport::Secret());
    ASSERT_TRUE(lives.greet(reachable(1, "guest")).is_ok());
    EXPECT_FALSE(lives.cannot_be_called("guest")) << "it has brought it again";
    EXPECT_EQ(lives.find("guest")->secret, reachable(1, "guest").secret);
}

TEST(LivesTest, OneThatTheProgramHasLoadedCanBeCalledAgain) {
    Lives lives;
    lives.load(reachable(1, "server"));
    ASSERT_TRUE(lives.greet(reachable(1, "server")).is_ok());
    static_cast<void>(lives.rest("server"));
    EXPECT_FALSE(lives.cannot_be_called("server"));
    EXPECT_EQ(lives.find("server")->secret, reachable(1, "server").secret);
    ASSERT_TRUE(lives.greet(reachable(2, "server")).is_ok());
    static_cast<void>(lives.rest("server"));
    EXPECT_TRUE(lives.cannot_be_called("server")) << "its successor was not loaded";
}

TEST(LivesTest, NamesAtRestAreForgottenTheLongestFirst) {
    Lives lives;
    lives.load(life(1, "awaited"));
    lives.load(life(1, "connected"));
    lives.load(life(1, "back"));
    EXPECT_EQ(lives.rest("back"), std::nullopt);
    for (std::size_t i = 1; i < Lives::kMostAtRest; ++i) {
        ASSERT_TRUE(lives.greet(life(1, std::to_string(i))).is_ok());
        EXPECT_EQ(lives.rest(std::to_string(i)), std::nullopt) << i;
        EXPECT_EQ(lives.rest(std::to_string(i)), std::nullopt) << "again";
    }
    lives.wake("back");
    for (const std::string name : {"one", "two"}) ASSERT_TRUE(lives.greet(life(1, name)).is_ok());
    EXPECT_EQ(lives.rest("one"), std::nullopt);
    EXPECT_EQ(lives.rest("two"), "1");
    EXPECT_EQ(lives.find("1"), nullptr);
    EXPECT_NE(lives.find("2"), nullptr);
    for (const std::string name : {"awaited", "connected", "back"})
        EXPECT_NE(lives.find(name), nullptr) << name;
    EXPECT_EQ(lives.rest("nobody"), std::nullopt);
}

}  // namespace
}  // namespace pccl::p2p
