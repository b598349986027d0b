// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/bounded_store.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/base/threads/background_thread.h"

namespace pccl::bootstrap {

namespace {

// For answers that come as the deadline passes, and for the calls that end a rendezvous.
constexpr Duration kGrace = std::chrono::seconds(1);

/// Does the work, and returns the exception that it throws.
Status caught(Store& store, const std::function<void(Store&)>& work) {
    try {
        work(store);
        return Status::ok();
    } catch (const std::exception& error) {
        return Status::unavailable(concat(store.where(), " failed: ", error.what()));
    }
}

}  // namespace

struct BoundedStore::Call {
    [[nodiscard]] bool ends_by(Deadline end, Duration grace) const;
    void end(Status why) {
        const std::lock_guard lock(mutex);
        failure = std::move(why);
        has_ended = true;
        changed.notify_all();
    }

    mutable std::mutex mutex;
    mutable std::condition_variable changed;
    bool has_ended = false;  // guarded by mutex; so is this
    Status failure;          // an exception of the store
};

/// Waits for the call until `end` and then for `grace`.
bool BoundedStore::Call::ends_by(Deadline end, Duration grace) const {
    std::unique_lock lock(mutex);
    while (!has_ended && !end.passed()) changed.wait_for(lock, end.slice());
    return changed.wait_for(lock, grace, [&] { return has_ended; });
}

/// Runs calls one after the other on a thread, which its owners share with it.
class BoundedStore::Caller : public std::enable_shared_from_this<Caller> {
   public:
    /// Starts `call`, which takes its turn after the one before it. Throws std::system_error if the
    /// thread cannot start.
    void start(std::function<void()> call);
    /// Keeps the thread for further calls, or ends it after the present one.
    void keep(bool is_kept);

   private:
    void run();
    void run_next(std::unique_lock<std::mutex>& lock);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> next_;  // guarded by mutex_; so are these
    bool is_kept_ = false;
    bool has_thread_ = false;
};

void BoundedStore::Caller::start(std::function<void()> call) {
    const std::lock_guard lock(mutex_);
    if (!has_thread_)
        BackgroundThread("pccl-store", [self = shared_from_this()] { self->run(); }).release();
    has_thread_ = true;
    next_ = std::move(call);
    changed_.notify_all();
}

void BoundedStore::Caller::keep(bool is_kept) {
    const std::lock_guard lock(mutex_);
    is_kept_ = is_kept;
    changed_.notify_all();
}

void BoundedStore::Caller::run_next(std::unique_lock<std::mutex>& lock) {
    auto call = std::exchange(next_, nullptr);
    lock.unlock();
    call();
    call = nullptr;  // without the lock: it may end the store
    lock.lock();
}

void BoundedStore::Caller::run() {
    std::unique_lock lock(mutex_);
    do {
        changed_.wait(lock, [this] { return next_ != nullptr || !is_kept_; });
        if (next_ == nullptr) break;
        run_next(lock);
    } while (is_kept_ || next_ != nullptr);
    has_thread_ = false;
}

BoundedStore::BoundedStore(std::shared_ptr<Store> store, Duration per_call)
    : store_(std::move(store)), per_call_(per_call), caller_(std::make_shared<Caller>()) {}

BoundedStore::~BoundedStore() { caller_->keep(false); }

void BoundedStore::limit(Deadline deadline) {
    limit_ = deadline;
    caller_->keep(!deadline.is_never());
}

Status BoundedStore::unanswered() const {
    const std::string host = store_->server();
    return Status::unavailable(concat(store_->where(), host.empty() ? "" : " on ", host,
                                      " did not answer in time; is its process stopped?"));
}

Status BoundedStore::run(Deadline end, std::function<void(Store&)> work) {
    if (abandoned_ != nullptr && !abandoned_->ends_by(end, Duration::zero())) return unanswered();
    auto call = std::make_shared<Call>();
    try {
        caller_->start(
            [store = store_, call, work = std::move(work)] { call->end(caught(*store, work)); });
    } catch (const std::system_error& error) {
        return Status::resource_exhausted(
            concat("cannot start a thread for ", store_->where(), ": ", error.what()));
    }
    if (call->ends_by(end, kGrace)) {
        abandoned_.reset();
        return call->failure;
    }
    abandoned_ = std::move(call);
    return unanswered();
}

template <typename Outcome, typename Work>
Outcome BoundedStore::outcome_of(Work work, Duration wait) {
    const Duration longest =
        wait > Duration::max() - per_call_ ? Duration::max() : wait + per_call_;
    const auto outcome = std::make_shared<Outcome>(Status::timeout("the call has not ended"));
    PCCL_TRY(run(limit_.within(longest),
                 [outcome, work = std::move(work)](Store& store) { *outcome = work(store); }));
    return std::move(*outcome);
}

Status BoundedStore::set(const std::string& key, const std::string& value) {
    return outcome_of<Status>([=](Store& store) { return store.set(key, value); });
}

Result<std::string> BoundedStore::get(const std::string& key, Deadline deadline) {
    const Duration wait = std::min(deadline.remaining(), limit_.remaining());
    const auto get = [=](Store& store) { return store.get(key, Deadline::after(wait)); };
    return outcome_of<Result<std::string>>(get, wait);
}

Result<std::int64_t> BoundedStore::add(const std::string& key, std::int64_t delta) {
    return outcome_of<Result<std::int64_t>>([=](Store& store) { return store.add(key, delta); });
}

Status BoundedStore::remove(const std::string& key) {
    return outcome_of<Status>([=](Store& store) { return store.remove(key); });
}

Status BoundedStore::reopen(Deadline deadline) {
    const Duration wait = std::min(deadline.remaining(), limit_.remaining());
    const auto reopen = [=](Store& store) { return store.reopen(Deadline::after(wait)); };
    return outcome_of<Status>(reopen, wait);
}

Duration pause_after(Duration waited) {
    return std::clamp<Duration>(waited / 8, std::chrono::milliseconds(1),
                                std::chrono::milliseconds(200));
}

}  // namespace pccl::bootstrap
