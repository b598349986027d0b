// SPDX-License-Identifier: Apache-2.0

// Store in a shared file, a hash table (HashFile).
//
// Writers hold a flock(), so no rank is a server, and ranks may come and go. Waits poll at
// intervals of 1 to 100 ms. A child of fork() must open its own store. The file is never deleted,
// since it belongs to the user who named it. A process that can write to the file can forge
// entries, so a file of another user is refused.
#pragma once

#include <optional>
#include <string>

#include <pccl/store.h>
#include "csrc/base/fork.h"
#include "csrc/bootstrap/rendezvous/hash_file.h"

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
    [[nodiscard]] std::string where() const override { return "the store " + file_.path(); }

   private:
    class Lock;
    explicit FileStore(HashFile file);

    [[nodiscard]] Status check_owner() const;
    [[nodiscard]] Status check_process() const;
    Status create(StoreContent content);
    Status await_creation(Deadline deadline);
    /// Returns the value of `key`; nullopt where there is none.
    [[nodiscard]] Result<std::optional<std::string>> look(const std::string& key) const;

    const ForkMark made_in_;
    HashFile file_;
    const bool is_local_;  // readers need no lock
};

}  // namespace pccl::bootstrap
