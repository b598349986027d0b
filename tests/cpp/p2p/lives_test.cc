// Which life of a session is the one meant.
#include "csrc/p2p/lives.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace pccl::p2p
