// What was done to the network, a JSON object on each line: appended, never rewritten, no secrets.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::cluster {

/// One thread at a time.
class PCCL_API AuditLog {
   public:
    /// Appends to a file of this user that nobody else may write; empty: keeps lines in memory
    /// alone.
    [[nodiscard]] static Result<AuditLog> open(const std::string& path);

    /// `event` is a JSON object with members, which gets "time", "user" and "pid" in front. Written
    /// through to the disk before this returns; an error says that it was not.
    [[nodiscard]] Status add(std::string_view event);
    /// The last lines of this process, oldest first; at most kMostKept.
    [[nodiscard]] std::vector<std::string> lines() const { return {kept_.begin(), kept_.end()}; }

    static constexpr std::size_t kMostKept = 4096;

   private:
    AuditLog(UniqueFd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

    UniqueFd file_;  // not open: none
    std::string path_;
    std::deque<std::string> kept_;
};

}  // namespace pccl::cluster
