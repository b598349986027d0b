// A store in a file that all ranks see: a log of records, which every process replays.
//
// Writers append under flock(), so no rank hosts anything and ranks may come and go. Waiting polls,
// with pauses from 1 to 50 ms. A child of fork() must open its own. The file is never deleted, it
// belongs to whoever named it. Who can write to the file can forge what ranks say, so one of
// another user is refused.
#pragma once

#include <cstddef>
#include <string>

#include "csrc/base/fork.h"
#include "csrc/base/unique_fd.h"
#include "csrc/bootstrap/rendezvous/dictionary.h"
#include "csrc/bootstrap/rendezvous/store.h"

namespace pccl::bootstrap {

class PCCL_API FileStore final : public Store {
   public:
    /// Rank 0 makes the file, for this user alone (an empty one will do), the others wait for that:
    /// kTimeout after `deadline`. kInvalidArgument when it is no store, or holds something that
    /// `content` does not admit, is a symbolic link or no regular file, belongs to another user
    /// than this one or root, or others may write to it.
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
    /// Writes one record behind the last whole one. With the exclusive lock held and the log
    /// replayed.
    Status append(std::string_view record);
    /// Takes in what was appended since the last time. With a lock held.
    Status replay();
    Status apply(std::string_view record);
    [[nodiscard]] Result<std::size_t> size() const;
    [[nodiscard]] Status fault(int error, std::string_view what) const;

    const ForkMark made_in_;
    std::string path_;
    UniqueFd file_;
    std::size_t replayed_ = 0;  // bytes
    Dictionary entries_;
};

}  // namespace pccl::bootstrap
