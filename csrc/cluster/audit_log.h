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

    AuditLog(AuditLog&&) = default;
    AuditLog& operator=(AuditLog&&) = default;
    AuditLog(const AuditLog&) = delete;
    AuditLog& operator=(const AuditLog&) = delete;
    /// Tries once more to write what could not be written.
    ~AuditLog();

    /// `event` is a JSON object with members, which gets "time", "user" and "pid" in front. Written
    /// through to the disk before this returns, behind what could not be written earlier. An error
    /// says that it was not, or that `room` bytes more, for what is to follow, do not fit: then
    /// nothing of it is in the file, or in lines().
    [[nodiscard]] Status add(std::string_view event, std::size_t room = 0);
    /// The same for what was done already: where it cannot be written now, it is kept, and written
    /// before any other event.
    [[nodiscard]] Status add_done(std::string_view event);
    /// The last events of this process, oldest first; at most kMostKept.
    [[nodiscard]] std::vector<std::string> lines() const { return {kept_.begin(), kept_.end()}; }

    static constexpr std::size_t kMostKept = 4096;

   private:
    AuditLog(UniqueFd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

    [[nodiscard]] Status write_waiting();
    [[nodiscard]] Status write(std::string_view lines, std::size_t room);
    [[nodiscard]] Status append(std::string lines, std::size_t room);
    [[nodiscard]] Status fault(int error) const;
    void keep(std::string line);

    UniqueFd file_;  // not open: none
    std::string path_;
    std::string waiting_;  // lines that could not be written
    std::deque<std::string> kept_;
};

}  // namespace pccl::cluster
