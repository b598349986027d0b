// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/file_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "csrc/base/log/log.h"
#include "csrc/base/log/wait_notice.h"
#include "csrc/base/open_error.h"
#include "csrc/bootstrap/rendezvous/entry.h"
#include "csrc/sys/file_system.h"
#include "csrc/sys/private_file.h"

namespace pccl::bootstrap {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(1);
constexpr Duration kLongestPause = std::chrono::milliseconds(100);
constexpr Duration kLockTimeout = std::chrono::seconds(30);

/// Pauses of growing length, which end at a deadline.
class Pause {
   public:
    void operator()(Deadline deadline) {
        system_clock().sleep_for(std::min(next_, deadline.remaining()));
        next_ = std::min(2 * next_, kLongestPause);
    }

   private:
    Duration next_ = kFirstPause;
};

}  // namespace

/// flock() with a timeout: a process that is stopped while it holds the lock must not block the
/// others forever.
class FileStore::Lock {
   public:
    static Result<Lock> take(const FileStore& store, int mode) {
        const Deadline deadline = Deadline::after(kLockTimeout);
        for (Pause pause; ::flock(store.file_.descriptor(), mode | LOCK_NB) != 0; pause(deadline)) {
            if (errno != EWOULDBLOCK && errno != EINTR)
                return store.file_.fault(errno, "cannot lock");
            if (deadline.passed())
                return Status::unavailable(concat("another process has held the lock on ",
                                                  store.file_.path(), " for 30 s; is it stopped?"));
        }
        return Lock(store.file_.descriptor());
    }
    Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Lock(const Lock&) = delete;
    Lock& operator=(Lock&&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() {
        if (fd_ >= 0) ::flock(fd_, LOCK_UN);
    }

   private:
    explicit Lock(int fd) : fd_(fd) {}
    int fd_;
};

Result<std::shared_ptr<FileStore>> FileStore::open(const std::string& path, Rank rank,
                                                   Deadline deadline, StoreContent content) {
    constexpr mode_t kOwnerOnly = 0600;
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (rank == 0 ? O_CREAT : 0);
    const TimePoint begun = system_clock().now();
    WaitNotice notice;
    for (Pause pause;; pause(deadline)) {
        UniqueFd file(::open(path.c_str(), flags, kOwnerOnly));
        if (file.is_open()) {
            std::shared_ptr<FileStore> store(new FileStore(HashFile(std::move(file), path)));
            PCCL_TRY(store->check_owner());
            PCCL_TRY(rank == 0 ? store->create(content) : store->await_creation(deadline));
            return store;
        }
        if (errno == ELOOP)
            return Status::invalid_argument(
                concat("the store ", path, " is a symbolic link; name the file itself"));
        if (rank == 0 || errno != ENOENT)
            return open_error(errno, concat("cannot open the store ", path));
        if (deadline.passed())
            return Status::timeout(concat("rank 0 has not made the store ", path), 0);
        if (const Duration waited = system_clock().now() - begun; notice.is_due(waited))
            log(LogLevel::kWarning, "rank ", rank, " has waited ", in_seconds(waited),
                " for rank 0 to make the store ", path);
    }
}

FileStore::FileStore(HashFile file)
    : file_(std::move(file)), is_local_(sys::is_on_local_file_system(file_.descriptor())) {}

/// A file from before the job may belong to another user, who could read and forge all entries.
Status FileStore::check_owner() const {
    constexpr mode_t kWritable = S_IWGRP | S_IWOTH;
    return sys::check_private(file_.descriptor(), where(),
                              {.of_own = kWritable, .of_root = kWritable});
}

Status FileStore::check_process() const {
    if (!made_in_.is_child()) return Status::ok();
    return Status::unavailable(
        concat(where(), " is open in the parent of this forked process; open it here, too"));
}

Status FileStore::create(StoreContent content) {
    PCCL_ASSIGN_OR_RETURN(const Lock lock, Lock::take(*this, LOCK_EX));
    PCCL_ASSIGN_OR_RETURN(const std::size_t bytes, file_.size());
    if (bytes == 0) return file_.create();
    if (content == StoreContent::kAny) return file_.is_complete().status();
    return Status::invalid_argument(concat(where(), " exists already, perhaps from an ",
                                           "earlier job; remove it or name another file"));
}

Status FileStore::await_creation(Deadline deadline) {
    for (Pause pause;; pause(deadline)) {
        PCCL_ASSIGN_OR_RETURN(const bool is_complete, file_.is_complete());
        if (is_complete) return Status::ok();
        if (deadline.passed()) return Status::timeout(concat("rank 0 has not made ", where()), 0);
    }
}

Result<std::optional<std::string>> FileStore::look(const std::string& key) const {
    if (is_local_) {
        auto value = file_.find(key);
        if (value.is_ok()) return value;
    }
    // A change under way looks like damage.
    PCCL_ASSIGN_OR_RETURN(const Lock lock, Lock::take(*this, LOCK_SH));
    return file_.find(key);
}

Status FileStore::set(const std::string& key, const std::string& value) {
    PCCL_TRY(check_entry(key, value));
    PCCL_TRY(check_process());
    PCCL_ASSIGN_OR_RETURN(const Lock lock, Lock::take(*this, LOCK_EX));
    return file_.set(key, value);
}

Result<std::string> FileStore::get(const std::string& key, Deadline deadline) {
    PCCL_TRY(check_key(key));
    PCCL_TRY(check_process());
    for (Pause pause;; pause(deadline)) {
        PCCL_ASSIGN_OR_RETURN(const auto value, look(key));
        if (value) return *value;
        if (deadline.passed())
            return Status::timeout(concat("nobody has set \"", key, "\" in ", where()));
    }
}

Result<std::int64_t> FileStore::add(const std::string& key, std::int64_t delta) {
    PCCL_TRY(check_key(key));
    PCCL_TRY(check_process());
    PCCL_ASSIGN_OR_RETURN(const Lock lock, Lock::take(*this, LOCK_EX));
    PCCL_ASSIGN_OR_RETURN(const auto text, file_.find(key));
    PCCL_ASSIGN_OR_RETURN(const std::int64_t value, sum_of(key, text ? &*text : nullptr, delta));
    PCCL_TRY(file_.set(key, std::to_string(value)));
    return value;
}

Status FileStore::remove(const std::string& key) {
    PCCL_TRY(check_key(key));
    PCCL_TRY(check_process());
    PCCL_ASSIGN_OR_RETURN(const Lock lock, Lock::take(*this, LOCK_EX));
    PCCL_ASSIGN_OR_RETURN(const auto value, file_.find(key));
    return value ? file_.remove(key) : Status::ok();
}

}  // namespace pccl::bootstrap
