// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/sealed_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/fakes/deadlines.h"
#include "tests/fakes/memory_store.h"

namespace pccl::bootstrap {
namespace {

using fakes::already;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr transport::Secret kOurs{1, 2, 3};
constexpr transport::Secret kOther{1, 2, 4};

class SealedStoreTest : public testing::Test {
   protected:
    [[nodiscard]] std::string entry(const std::string& key) const {
        return plain_->get(key, already()).value();
    }
    void forge(const std::string& key, const std::string& entry) const {
        ASSERT_TRUE(plain_->set(key, entry).is_ok());
    }
    void expect_refused(const std::string& key) {
        const Status status = sealed_.get(key, already()).status();
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(), AllOf(HasSubstr(key), HasSubstr("PCCL_SECRET_FILE")));
    }

    const std::shared_ptr<fakes::MemoryStore> plain_ = std::make_shared<fakes::MemoryStore>();
    SealedStore sealed_{plain_, kOurs};
};

TEST_F(SealedStoreTest, WhoHasTheSecretReadsWhatWasSet) {
    SealedStore peer(plain_, kOurs);
    for (const std::string& value : {std::string(), std::string("value"), std::string(3, '\0')}) {
        ASSERT_TRUE(sealed_.set("key", value).is_ok());
        EXPECT_EQ(peer.get("key", already()).value(), value);
    }
}

TEST_F(SealedStoreTest, AnEntryOfAnotherSecretIsRefused) {
    SealedStore stranger(plain_, kOther);
    ASSERT_TRUE(stranger.set("key", "value").is_ok());
    expect_refused("key");
}

TEST_F(SealedStoreTest, AnEntryWithoutASealIsRefused) {
    forge("key", "value");
    expect_refused("key");
    forge("key", "");
    expect_refused("key");
}

TEST_F(SealedStoreTest, AnEntryOfAnotherKeyIsRefused) {
    ASSERT_TRUE(sealed_.set("endpoint/1", "value").is_ok());
    forge("endpoint/2", entry("endpoint/1"));
    expect_refused("endpoint/2");
    EXPECT_TRUE(sealed_.get("endpoint/1", already()).is_ok());
}

TEST_F(SealedStoreTest, NeitherABitNorAByteOfAnEntryCanChange) {
    ASSERT_TRUE(sealed_.set("key", "value").is_ok());
    const std::string whole = entry("key");
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 1);
        forge("key", changed);
        expect_refused("key");
        forge("key", whole.substr(0, at));
        expect_refused("key");
    }
    forge("key", whole + "s");
    expect_refused("key");
}

TEST_F(SealedStoreTest, TheEndOfAKeyIsNotTheBeginningOfAValue) {
    ASSERT_TRUE(sealed_.set("ab", "c").is_ok());
    const std::string whole = entry("ab");
    forge("a", std::string(whole).insert(whole.size() - 1, "b"));
    expect_refused("a");
}

TEST_F(SealedStoreTest, WaitsAsTheStoreDoes) {
    EXPECT_EQ(sealed_.get("nothing", already()).status().code(), StatusCode::kTimeout);
    ASSERT_TRUE(sealed_.set("key", "value").is_ok());
    ASSERT_TRUE(sealed_.remove("key").is_ok());
    EXPECT_EQ(sealed_.get("key", already()).status().code(), StatusCode::kTimeout);
}

TEST_F(SealedStoreTest, HasNoCounters) {
    EXPECT_EQ(sealed_.add("key", 1).status().code(), StatusCode::kUnsupported);
}

TEST_F(SealedStoreTest, AnEntryShowsThatItIsSealed) {
    ASSERT_TRUE(sealed_.set("key", "").is_ok());
    EXPECT_EQ(check_unsealed(entry("key")).code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(check_unsealed("value").is_ok());
    EXPECT_TRUE(check_unsealed("").is_ok());
}

}  // namespace
}  // namespace pccl::bootstrap
