// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "csrc/runtime/flight/session_recorder.h"
#include "tests/cpp/runtime/recorded_sessions.h"

namespace pccl::runtime {
namespace {

TEST_F(SessionRecorderTest, IsShownWithNamesAndPaths) {
    const std::uint32_t pair = recorder_->add_pair("decode-3", "session \"prefill-0\"");
    post(pair, false, 10, at(1));
    const std::uint64_t ended = post(pair, true, 20, at(2));
    recorder_->ended(ended, Status::timeout("late"), {.kind = "tcp", .how = "by messages"}, at(3));
    const nlohmann::json shown = json_of(*recorder_)["transfers"];
    ASSERT_EQ(shown.size(), 2U);
    EXPECT_EQ(shown[0]["state"], "posted");
    EXPECT_TRUE(shown[0]["ended_ns"].is_null());
    EXPECT_FALSE(shown[0].contains("path"));
    EXPECT_EQ(shown[1]["state"], "failed");
    EXPECT_EQ(shown[1]["error"], to_string(StatusCode::kTimeout));
    EXPECT_EQ(shown[1]["path"], "tcp, by messages");
    EXPECT_EQ(shown[1]["session"], "decode-3");
    EXPECT_EQ(shown[1]["peer"], "session \"prefill-0\"");
}

}  // namespace
}  // namespace pccl::runtime
