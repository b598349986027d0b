// SPDX-License-Identifier: Apache-2.0

// Which incarnation_info of a session is the one meant.
#include "csrc/p2p/session/peer_incarnations.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>

namespace pccl::p2p {
namespace {

using testing::HasSubstr;

ConnectionInfo incarnation_info(std::uint64_t incarnation, const std::string& name = "server") {
    ConnectionInfo info;
    info.id = {.name = name, .incarnation = incarnation};
    return info;
}

TEST(PeerIncarnationsTest, TheLastOneThatWasLoadedOrCalledIsMeant) {
    PeerIncarnations incarnations;
    EXPECT_EQ(incarnations.find("server"), nullptr);
    incarnations.load(incarnation_info(1));
    EXPECT_EQ(incarnations.find("server")->id, incarnation_info(1).id);
    EXPECT_EQ(incarnations.accept_hello(incarnation_info(2)).to_string(), "ok");
    EXPECT_EQ(incarnations.find("server")->id, incarnation_info(2).id);
    incarnations.load(incarnation_info(3));
    EXPECT_EQ(incarnations.find("server")->id, incarnation_info(3).id);
    EXPECT_EQ(incarnations.accept_hello(incarnation_info(3)).to_string(), "ok") << "again";
    EXPECT_EQ(incarnations.find("other"), nullptr);
}

TEST(PeerIncarnationsTest, ADisplacedOneCallsInVainUnlessTheProgramLoadsIt) {
    PeerIncarnations incarnations;
    incarnations.load(incarnation_info(1));
    incarnations.load(incarnation_info(2));
    for (int i = 0; i < 2; ++i) {
        const Status refused = incarnations.accept_hello(incarnation_info(1));
        EXPECT_EQ(refused.code(), StatusCode::kAborted);
        EXPECT_THAT(refused.message(), HasSubstr("session \"server\" was displaced"));
        EXPECT_EQ(incarnations.find("server")->id, incarnation_info(2).id);
    }
    incarnations.load(incarnation_info(1));
    EXPECT_EQ(incarnations.accept_hello(incarnation_info(1)).to_string(), "ok");
    EXPECT_EQ(incarnations.accept_hello(incarnation_info(2)).code(), StatusCode::kAborted);
}

TEST(PeerIncarnationsTest, NamesAreApartAndTheLastDisplacedOnesOfEachAreKept) {
    PeerIncarnations incarnations;
    incarnations.load(incarnation_info(1, "other"));
    incarnations.load(incarnation_info(2, "other"));
    for (std::uint64_t each = 0; each < 10 * PeerIncarnations::kMostDisplaced; ++each)
        incarnations.load(incarnation_info(each));
    EXPECT_EQ(incarnations.accept_hello(incarnation_info(10 * PeerIncarnations::kMostDisplaced - 2))
                  .code(),
              StatusCode::kAborted);
    EXPECT_EQ(incarnations.accept_hello(incarnation_info(9 * PeerIncarnations::kMostDisplaced - 1))
                  .code(),
              StatusCode::kAborted);
    EXPECT_EQ(incarnations.accept_hello(incarnation_info(1, "other")).code(), StatusCode::kAborted);
    EXPECT_EQ(incarnations.accept_hello(incarnation_info(2)).to_string(), "ok")
        << "so long ago that it is forgotten";
}

ConnectionInfo reachable(std::uint64_t incarnation, const std::string& name) {
    ConnectionInfo info = incarnation_info(incarnation, name);
    info.process = {.host = "node7", .pid = 812};
    info.secret.fill(7);
    return info;
}

TEST(PeerIncarnationsTest, OfOneThatHasCalledAndGoneNeitherSecretNorAddressStays) {
    PeerIncarnations incarnations;
    ASSERT_TRUE(incarnations.accept_hello(reachable(1, "guest")).is_ok());
    EXPECT_FALSE(incarnations.cannot_be_called("guest"));
    EXPECT_EQ(incarnations.rest("guest"), std::nullopt);
    EXPECT_TRUE(incarnations.cannot_be_called("guest"));
    EXPECT_EQ(incarnations.find("guest")->id, incarnation_info(1, "guest").id);
    EXPECT_EQ(incarnations.find("guest")->process.pid, 812);
    EXPECT_EQ(incarnations.find("guest")->secret, transport::Secret());
    ASSERT_TRUE(incarnations.accept_hello(reachable(1, "guest")).is_ok());
    EXPECT_FALSE(incarnations.cannot_be_called("guest")) << "it has brought it again";
    EXPECT_EQ(incarnations.find("guest")->secret, reachable(1, "guest").secret);
}

TEST(PeerIncarnationsTest, OneThatTheProgramHasLoadedCanBeCalledAgain) {
    PeerIncarnations incarnations;
    incarnations.load(reachable(1, "server"));
    ASSERT_TRUE(incarnations.accept_hello(reachable(1, "server")).is_ok());
    static_cast<void>(incarnations.rest("server"));
    EXPECT_FALSE(incarnations.cannot_be_called("server"));
    EXPECT_EQ(incarnations.find("server")->secret, reachable(1, "server").secret);
    ASSERT_TRUE(incarnations.accept_hello(reachable(2, "server")).is_ok());
    static_cast<void>(incarnations.rest("server"));
    EXPECT_TRUE(incarnations.cannot_be_called("server")) << "its successor was not loaded";
}

TEST(PeerIncarnationsTest, NamesAtRestAreForgottenTheLongestFirst) {
    PeerIncarnations incarnations;
    incarnations.load(incarnation_info(1, "awaited"));
    incarnations.load(incarnation_info(1, "connected"));
    incarnations.load(incarnation_info(1, "back"));
    EXPECT_EQ(incarnations.rest("back"), std::nullopt);
    for (std::size_t i = 1; i < PeerIncarnations::kMostAtRest; ++i) {
        ASSERT_TRUE(incarnations.accept_hello(incarnation_info(1, std::to_string(i))).is_ok());
        EXPECT_EQ(incarnations.rest(std::to_string(i)), std::nullopt) << i;
        EXPECT_EQ(incarnations.rest(std::to_string(i)), std::nullopt) << "again";
    }
    incarnations.wake("back");
    for (const std::string name : {"one", "two"})
        ASSERT_TRUE(incarnations.accept_hello(incarnation_info(1, name)).is_ok());
    EXPECT_EQ(incarnations.rest("one"), std::nullopt);
    EXPECT_EQ(incarnations.rest("two"), "1");
    EXPECT_EQ(incarnations.find("1"), nullptr);
    EXPECT_NE(incarnations.find("2"), nullptr);
    for (const std::string name : {"awaited", "connected", "back"})
        EXPECT_NE(incarnations.find(name), nullptr) << name;
    EXPECT_EQ(incarnations.rest("nobody"), std::nullopt);
}

}  // namespace
}  // namespace pccl::p2p
