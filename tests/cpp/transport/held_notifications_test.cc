// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/held_notifications.h"

#include <gmock/gmock.h>

namespace pccl::transport {
namespace {

class HeldNotificationsTest : public testing::Test {
   protected:
    void add(int name, std::uint64_t behind, std::uint64_t failures_known = 0) {
        held_.add({.bytes = {static_cast<std::byte>(name)},
                   .behind = behind,
                   .failures_known = failures_known},
                  over_, failed_);
        if (is_main_over_) held_.main_over(0);
    }
    void end_part(bool has_failed = false) {
        failed_ += has_failed ? 1 : 0;
        held_.parts_over(++over_, failed_);
    }
    /// Names of those that leave, at most `room`.
    std::vector<int> released(std::size_t room = 100) {
        std::vector<int> names;
        held_.release([&](const RmaHeldNotifications::HeldNotification& due) {
            if (names.size() == room) return false;
            names.push_back(static_cast<int>(due.bytes.front()));
            return true;
        });
        return names;
    }

    bool is_main_over_ = true;  // whether add() records that it is over before the notification
    RmaHeldNotifications held_;
    std::uint64_t over_ = 0;
    std::uint64_t failed_ = 0;
};

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(HeldNotificationsTest, LeaveOnceThePartsBeforeThemAreOver) {
    add(1, 1);
    add(2, 3);
    add(3, 3);
    EXPECT_THAT(released(), IsEmpty());
    end_part();
    EXPECT_THAT(released(), ElementsAre(1));
    end_part();
    EXPECT_THAT(released(), IsEmpty());
    end_part();
    add(4, 3);
    EXPECT_THAT(released(), ElementsAre(2, 3, 4));
    EXPECT_TRUE(held_.is_empty());
}

TEST_F(HeldNotificationsTest, WaitForTheMainStreamToo) {
    is_main_over_ = false;
    add(1, 0);
    add(2, 1);
    EXPECT_THAT(released(), IsEmpty());
    held_.main_over(0);
    EXPECT_THAT(released(), ElementsAre(1));
    held_.main_over(0);
    EXPECT_THAT(released(), IsEmpty());
    end_part();
    EXPECT_THAT(released(), ElementsAre(2));
}

TEST_F(HeldNotificationsTest, AreDroppedBehindAFailureOfTheMainStreamThatWasNotKnown) {
    is_main_over_ = false;
    add(1, 0);
    add(2, 0);
    held_.main_over(0);
    held_.main_over(1);
    EXPECT_THAT(released(), ElementsAre(1));
    EXPECT_TRUE(held_.is_empty());
}

TEST_F(HeldNotificationsTest, StayWhileThereIsNoRoomForThem) {
    add(1, 1);
    add(2, 1);
    end_part();
    EXPECT_THAT(released(1), ElementsAre(1));
    EXPECT_FALSE(held_.is_empty());
    EXPECT_THAT(released(1), ElementsAre(2));
}

TEST_F(HeldNotificationsTest, AreDroppedBehindAFailureThatWasNotKnown) {
    add(1, 1);
    add(2, 2);
    end_part();
    end_part(true);
    end_part(true);  // behind both
    add(3, 3, 1);
    add(4, 3, 2);
    EXPECT_THAT(released(), ElementsAre(1, 4));
    EXPECT_TRUE(held_.is_empty());
}

}  // namespace
}  // namespace pccl::transport
