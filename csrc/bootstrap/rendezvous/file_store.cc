// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/file_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"
#include "csrc/base/log/log.h"
#include "csrc/base/log/wait_notice.h"
#include "csrc/base/open_error.h"
#include "csrc/bootstrap/rendezvous/entry.h"
#include "csrc/sys/private_file.h"

namespace pccl::bootstrap {
namespace {

constexpr std::string_view kHeader = "pccl store 1\n";
constexpr std::size_t kLargestFile = 256 * kMiB;
constexpr std::size_t kLargestRecord = kLongestKey + kLongestValue + 16;
constexpr Duration kFirstPause = std::chrono::milliseconds(1);
constexpr Duration kLongestPause = std::chrono::milliseconds(50);
constexpr Duration kLockTimeout = std::chrono::seconds(30);

enum class RecordKind : std::uint8_t { kSet = 1, kRemove = 2 };

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

/// Returns the record with a leading length, so that a record that a crash has cut short is
/// detected.
std::string framed_record(std::string_view payload) {
    ByteWriter out;
    out.text(payload);
    return out.take();
}

std::string set_record(std::string_view key, std::string_view value) {
    ByteWriter out;
    out.u8(static_cast<std::uint8_t>(RecordKind::kSet));
    out.text(key);
    out.text(value);
    return framed_record(out.take());
}

std::string remove_record(std::string_view key) {
    ByteWriter out;
    out.u8(static_cast<std::uint8_t>(RecordKind::kRemove));
    out.text(key);
    return framed_record(out.take());
}

}  // namespace

/// flock() with a timeout: a process that is stopped while it holds the lock must not block the
/// others forever.
class FileStore::Lock {
   public:
    static Result<Lock> take(const FileStore& store, int mode) {
        const Deadline deadline = Deadline::after(kLockTimeout);
        for (Pause pause; ::flock(store.file_.get(), mode | LOCK_NB) != 0; pause(deadline)) {
            if (errno != EWOULDBLOCK && errno != EINTR) return store.fault(errno, "cannot lock");
            if (deadline.passed())
                return Status::unavailable(concat("another process has held the lock on ",
                                                  store.path_, " for 30 s; is it stopped?"));
        }
        return Lock(store.file_.get());
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
            std::shared_ptr<FileStore> store(new FileStore(path, std::move(file)));
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

/// A file from before the job may belong to another user, who could read and forge all entries.
Status FileStore::check_owner() const {
    constexpr mode_t kWritable = S_IWGRP | S_IWOTH;
    return sys::check_private(file_.get(), concat("the store ", path_),
                              {.of_own = kWritable, .of_root = kWritable});
}

Status FileStore::create(StoreContent content) {
    PCCL_ASSIGN_OR_RETURN(const Lock lock, Lock::take(*this, LOCK_EX));
    PCCL_ASSIGN_OR_RETURN(const std::size_t bytes, size());
    if (bytes != 0 && content == StoreContent::kAny) return replay();
    if (bytes != 0)
        return Status::invalid_argument(concat("the store ", path_,
                                               " exists already, perhaps from an ",
                                               "earlier job; remove it or name another file"));
    return append(kHeader);
}

Status FileStore::await_creation(Deadline deadline) {
    for (Pause pause;; pause(deadline)) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t bytes, size());
        if (bytes >= kHeader.size()) break;
        if (deadline.passed())
            return Status::timeout(concat("rank 0 has not made the store ", path_), 0);
    }
    PCCL_ASSIGN_OR_RETURN(const Lock lock, Lock::take(*this, LOCK_SH));
    return replay();
}

Status FileStore::set(const std::string& key, const std::string& value) {
    PCCL_TRY(check_entry(key, value));
    PCCL_ASSIGN_OR_RETURN(const Lock lock, Lock::take(*this, LOCK_EX));
    PCCL_TRY(replay());
    return append(set_record(key, value));
}

Result<std::string> FileStore::get(const std::string& key, Deadline deadline) {
    PCCL_TRY(check_key(key));
    for (Pause pause;; pause(deadline)) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t bytes, size());
        if (bytes != replayed_) {
            PCCL_ASSIGN_OR_RETURN(const Lock lock, Lock::take(*this, LOCK_SH));
            PCCL_TRY(replay());
        }
        if (const std::string* const value = entries_.find(key)) return *value;
        if (deadline.passed())
            return Status::timeout(concat("nobody has set \"", key, "\" in the store ", path_));
    }
}

Result<std::int64_t> FileStore::add(const std::string& key, std::int64_t delta) {
    PCCL_TRY(check_key(key));
    PCCL_ASSIGN_OR_RETURN(const Lock lock, Lock::take(*this, LOCK_EX));
    PCCL_TRY(replay());
    PCCL_ASSIGN_OR_RETURN(const std::int64_t value, entries_.sum(key, delta));
    PCCL_TRY(append(set_record(key, std::to_string(value))));
    return value;
}

Status FileStore::remove(const std::string& key) {
    PCCL_TRY(check_key(key));
    PCCL_ASSIGN_OR_RETURN(const Lock lock, Lock::take(*this, LOCK_EX));
    PCCL_TRY(replay());
    return entries_.find(key) != nullptr ? append(remove_record(key)) : Status::ok();
}

Status FileStore::append(std::string_view record) {
    // Bytes after the last complete record are remains of a process that died while writing.
    PCCL_ASSIGN_OR_RETURN(const std::size_t bytes, size());
    if (bytes != replayed_ && ::ftruncate(file_.get(), static_cast<off_t>(replayed_)) != 0)
        return fault(errno, "cannot mend");
    if (record.size() > kLargestFile - replayed_)
        return Status::resource_exhausted(concat("the store ", path_, " is full"));
    std::size_t written = 0;
    while (written < record.size()) {
        const ssize_t count =
            ::pwrite(file_.get(), record.data() + written, record.size() - written,
                     static_cast<off_t>(replayed_ + written));
        if (count < 0 && errno != EINTR) return fault(errno, "cannot write to");
        if (count > 0) written += static_cast<std::size_t>(count);
    }
    return replay();
}

Status FileStore::replay() {
    PCCL_ASSIGN_OR_RETURN(const std::size_t bytes, size());
    if (bytes < replayed_ || bytes > kLargestFile)
        return Status::unavailable(concat("the store ", path_, " was changed by somebody else"));
    std::string tail(bytes - replayed_, '\0');
    const ssize_t count =
        ::pread(file_.get(), tail.data(), tail.size(), static_cast<off_t>(replayed_));
    if (count < 0) return fault(errno, "cannot read");
    std::string_view rest(tail.data(), static_cast<std::size_t>(count));
    if (replayed_ == 0 && !rest.empty()) {
        if (!rest.starts_with(kHeader))
            return Status::invalid_argument(concat(path_, " is not a store; name another file"));
        rest.remove_prefix(kHeader.size());
        replayed_ = kHeader.size();
    }
    while (!rest.empty()) {
        ByteReader in(rest);
        std::string record;
        const Status whole = in.text(record, kLargestRecord);
        if (!whole.is_ok() && rest.size() < kLargestRecord) break;  // incomplete: its writer died
        if (const Status status = whole.is_ok() ? apply(record) : whole; !status.is_ok())
            return status.with_context(
                concat("the store ", path_, " is damaged behind byte ", replayed_));
        rest.remove_prefix(in.offset());
        replayed_ += in.offset();
    }
    return Status::ok();
}

Status FileStore::apply(std::string_view record) {
    ByteReader in(record);
    std::uint8_t kind = 0;
    std::string key;
    std::string value;
    PCCL_TRY(in.u8(kind));
    PCCL_TRY(in.text(key, kLongestKey));
    if (kind != static_cast<std::uint8_t>(RecordKind::kSet)) {
        entries_.remove(key);
        return in.finish();
    }
    PCCL_TRY(in.text(value, kLongestValue));
    PCCL_TRY(in.finish());
    return entries_.set(key, value);
}

Result<std::size_t> FileStore::size() const {
    if (made_in_.is_child())
        return Status::unavailable(concat("the store ", path_,
                                          " is open in the parent of this forked process; open it "
                                          "here, too"));
    struct stat facts {};
    if (::fstat(file_.get(), &facts) != 0) return fault(errno, "cannot look at");
    return static_cast<std::size_t>(facts.st_size);
}

Status FileStore::fault(int error, std::string_view what) const {
    return Status::from_errno(error, concat(what, " the store ", path_));
}

}  // namespace pccl::bootstrap
