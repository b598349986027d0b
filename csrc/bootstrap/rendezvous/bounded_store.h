// SPDX-License-Identifier: Apache-2.0

// Deadlines for a store whose calls may block without end, for example because the process that
// serves it is stopped.
//
// The calls run on another thread, which is abandoned with its call at the deadline. It shares the
// ownership of the store, so a call that never returns leaks one thread. Between two limit()s the
// calls share a thread; other calls have one each.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <pccl/store.h>

namespace pccl::bootstrap {

class PCCL_API BoundedStore final : public Store {
   public:
    /// `per_call`: longest duration of a call, beyond the deadline of a get().
    BoundedStore(std::shared_ptr<Store> store, Duration per_call);
    BoundedStore(const BoundedStore&) = delete;
    BoundedStore& operator=(const BoundedStore&) = delete;
    ~BoundedStore() override;

    /// Ends calls at `deadline`, too, until the next limit(). Where the deadline can be cancelled,
    /// the flag must exist until then.
    void limit(Deadline deadline);

    // All calls return kUnavailable where the store has not answered one second after the deadline.
    // A later call waits for the abandoned one first.
    Status set(const std::string& key, const std::string& value) override;
    Result<std::string> get(const std::string& key, Deadline deadline) override;
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override;
    Status remove(const std::string& key) override;
    Status reopen(Deadline deadline) override;
    [[nodiscard]] std::string where() const override { return store_->where(); }
    [[nodiscard]] std::string server() const override { return store_->server(); }

   private:
    struct Call;
    class Caller;

    /// Runs `work` on its own thread until `end`, or a second longer. The work owns what it uses.
    Status run(Deadline end, std::function<void(Store&)> work);
    [[nodiscard]] Status unanswered() const;
    /// Returns the outcome of a call that may wait as long by itself.
    template <typename Outcome, typename Work>
    Outcome outcome_of(Work work, Duration wait = Duration::zero());

    const std::shared_ptr<Store> store_;
    const Duration per_call_;
    const std::shared_ptr<Caller> caller_;
    Deadline limit_ = Deadline::never();
    std::shared_ptr<Call> abandoned_;  // may be null
};

/// Returns the pause before the next look for a key, for stores that are polled. Frequent looks at
/// first and fewer later keep both latency and load low.
[[nodiscard]] PCCL_API Duration pause_after(Duration waited);

}  // namespace pccl::bootstrap
