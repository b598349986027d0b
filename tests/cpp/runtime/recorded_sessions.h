// SPDX-License-Identifier: Apache-2.0

// A recorder of sessions, and the transfers that it has recorded.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "csrc/runtime/flight/session_recorder.h"

namespace pccl::runtime {

class SessionRecorderTest : public testing::Test {
   protected:
    static TimePoint at(int second) { return TimePoint(std::chrono::seconds(second)); }
    void add(SessionEventKind kind, const std::string& session, const std::string& text) {
        recorder_->add_event(
            {.at = at(1), .kind = kind, .session = session, .peer = {}, .text = text});
    }
    std::uint64_t post(std::uint32_t pair, bool writes, std::uint64_t bytes, TimePoint now) {
        return recorder_->add({.pair = pair, .writes = writes, .bytes = bytes, .posted = now});
    }

    const std::unique_ptr<SessionRecorder> recorder_ = std::make_unique<SessionRecorder>();
};

}  // namespace pccl::runtime
