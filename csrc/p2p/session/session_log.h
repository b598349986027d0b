// SPDX-License-Identifier: Apache-2.0

// Log of what a session refuses, and its events in the flight record.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <pccl/memory.h>
#include <pccl/status.h>
#include "csrc/base/log/limited_log.h"
#include "csrc/runtime/flight/session_recorder.h"

namespace pccl::p2p {

/// Thread-safe.
class SessionLog {
   public:
    /// `session` must outlive the log.
    explicit SessionLog(const SessionId& session) : session_(session) {}

    /// Adds an event to the flight record.
    void record(runtime::SessionEventKind kind, std::string peer, std::string text) const;
    void refuse_connection(const Status& why);
    /// Logs the refused requests that were not logged yet; `all` is their number so far.
    void refuse_requests(std::uint64_t all);

   private:
    const SessionId& session_;
    LimitedLog refusals_{"refusals of sessions"};
    std::atomic<std::uint64_t> logged_refusals_{0};
};

}  // namespace pccl::p2p
