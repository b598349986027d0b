// SPDX-License-Identifier: Apache-2.0

// Store in a shared file: a log of records, which every process replays.
//
// Writers append under flock(), so no rank is a server, and ranks may come and go. Waits poll at
// intervals of 1 to 50 ms. A child of fork() must open its own store. The file is never deleted,
// since it belongs to the user who named it. A process that can write to the file can forge
// entries, so a file of another user is refused.
#pragma once

#include <cstddef>
#include <string>

#include <pccl/store.h>
#include "csrc/base/fork.h"
#include "csrc/base/unique_fd.h"
#include "csrc/bootstrap/rendezvous/dictionary.h"

namespace pccl::bootstrap {

class PCCL_API FileStore final : public Store {
   public:
    /// Opens the store. Rank 0 creates the file, for this user alone (an empty file is accepted);
    /// the others wait for it, and return kTimeout after `deadline`. Returns kInvalidArgument when
    /// the file is no store, has content that `content` does not permit, is a symbolic link or no
    /// regular file, belongs to a user other than this one or root, or is writable by others.
    static Result<std::shared_ptr<FileStore>> open(const std::string& path, Rank rank,
                                                   Deadline deadline,
                                                   StoreContent content = StoreContent::kNone);

    Status set(const std::string& key, const std::string& value) override;
    Result<std::string> get(const std::string& key, Deadline deadline) override;
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override;
    Status remove(const std::string& key) override;
    [[nodiscard]] std::string where() const override { return "the store " + path_; }

   private:
    class Lock;
    FileStore(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

    [[nodiscard]] Status check_owner() const;
    Status create(StoreContent content);
    Status await_creation(Deadline deadline);
    /// Appends one record after the last complete one. Requires the exclusive lock and a replayed
    /// log.
    Status append(std::string_view record);
    /// Reads the records since the last replay. Requires a lock.
    Status replay();
    Status apply(std::string_view record);
    [[nodiscard]] Result<std::size_t> size() const;
    [[nodiscard]] Status fault(int error, std::string_view what) const;

    const ForkMark made_in_;
    std::string path_;
    UniqueFd file_;
    std::size_t replayed_ = 0;  // in bytes
    Dictionary entries_;
};

}  // namespace pccl::bootstrap
