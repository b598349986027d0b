// SPDX-License-Identifier: Apache-2.0

// Audit log of changes to the network: one JSON object per line, append-only, without secrets.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/base/unique_fd.h"
#include "csrc/cluster/transaction.h"

namespace pccl::cluster {

/// Log of one controller. Not thread-safe.
class PCCL_API AuditLog {
   public:
    /// Opens a file for appending; it must belong to this user, and nobody else may write it. Empty
    /// path: keeps lines in memory only.
    [[nodiscard]] static Result<AuditLog> open(const std::string& path);

    AuditLog(AuditLog&&) = default;
    AuditLog& operator=(AuditLog&&) = default;
    AuditLog(const AuditLog&) = delete;
    AuditLog& operator=(const AuditLog&) = delete;
    /// Retries once to write pending lines.
    ~AuditLog();

    /// Adds `event`, a non-empty JSON object, with "time", "user" and "pid" in front. Writes
    /// pending lines first, and syncs to disk before it returns. On an error, or if `room` further
    /// bytes for later events do not fit, the event is neither in the file nor in lines().
    [[nodiscard]] Status add(std::string_view event, std::size_t room = 0);
    /// Adds the event of an action that is already done. If it cannot be written now, it stays
    /// pending and is written before any later event.
    [[nodiscard]] Status add_done(std::string_view event);
    /// Returns the last events of this process, oldest first; at most kMostKept.
    [[nodiscard]] std::vector<std::string> lines() const { return {kept_.begin(), kept_.end()}; }

    static constexpr std::size_t kMostKept = 4096;

   private:
    AuditLog(UniqueFd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

    [[nodiscard]] Status write_waiting();
    [[nodiscard]] Status write(std::string_view lines, std::size_t room);
    [[nodiscard]] Status append(std::string lines, std::size_t room);
    [[nodiscard]] Status fault(int error) const;
    void keep(std::string line);

    UniqueFd file_;  // not open: no file
    std::string path_;
    std::string waiting_;  // pending lines
    std::deque<std::string> kept_;
};

// Events, as JSON:

/// Returns the event that begins a transaction. It is written before any request to a switch, so
/// that the log contains it after a crash.
[[nodiscard]] std::string beginning_json(const std::string& from, const std::string& to,
                                         const std::vector<SwitchMember>& members);
[[nodiscard]] std::string ending_json(const std::string& to, const Report& report);
[[nodiscard]] std::string adoption_json(const std::string& phase);

}  // namespace pccl::cluster
