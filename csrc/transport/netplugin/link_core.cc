// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/netplugin/link_core.h"

#include <algorithm>

#include "csrc/base/text/text.h"
#include "csrc/sys/cpu/relax.h"

namespace pccl::transport::netplugin {
namespace {

constexpr int kTries = 100;
constexpr Duration kBetweenTries = std::chrono::microseconds(100);
constexpr Duration kBetweenLooks = std::chrono::milliseconds(10);
constexpr Duration kMostAtEnd = std::chrono::seconds(1);

}  // namespace

LinkCore::Lock LinkCore::try_use() {
    Lock lock(mutex_, std::try_to_lock);
    for (int i = 0; i < kTries && !lock.owns_lock(); ++i) {
        relax();
        static_cast<void>(lock.try_lock());
    }
    if (lock.owns_lock()) return lock;
    is_wanted_.store(true);
    // The polling thread either reads the flag after this, or has released the lock before.
    static_cast<void>(lock.try_lock());
    return lock;
}

LinkCore::Lock LinkCore::use_at_end() {
    if (made_in_.is_child()) return {};
    const Deadline deadline = Deadline::after(kMostAtEnd);
    Lock lock(mutex_, std::try_to_lock);
    while (!lock.owns_lock() && !deadline.passed()) {
        system_clock().sleep_for(kBetweenTries);
        static_cast<void>(lock.try_lock());
    }
    return lock;
}

Status LinkCore::check_call() {
    if (!parts_.caller.slot->is_stuck()) return Status::ok();
    const Status stuck = parts_.caller.plugin->stuck(*parts_.caller.slot);
    return status_.set(Status::peer_lost(parts_.peer, stuck.message()));
}

Status LinkCore::look_now_and_then() {
    const TimePoint now = system_clock().now();
    if (now - looked_ < kBetweenLooks) return Status::ok();
    looked_ = now;
    return look();
}

Status LinkCore::fail(const Status& fault) {
    fault_ = fault;
    const Status cause = parts_.watch.explain(
        Status::peer_lost(parts_.peer, concat(parts_.peer_name, ": ", fault.message())));
    return cause.is_ok() ? cause : status_.set(cause);
}

void LinkCore::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    parts_.watch.close(reason);
}

Activity LinkCore::poll() {
    Activity activity = Activity::kWaiting;
    bool is_wanted = false;
    if (Lock lock(mutex_, std::try_to_lock); lock.owns_lock()) {
        activity = advance_or_fail();
        // What a thread wanted to do meanwhile is done for it.
        is_wanted = is_wanted_.exchange(false);
        if (is_wanted) activity = std::max(activity, advance_or_fail());
        lock.unlock();
        is_wanted = is_wanted_.exchange(false) || is_wanted;
    }
    if (activity == Activity::kMoved || is_wanted) parts_.waiter->wake();
    return is_wanted ? Activity::kMoved : activity;
}

Activity LinkCore::advance_or_fail() {
    if (has_fault() || status_.is_set()) return Activity::kIdle;
    const auto advanced = advance();
    if (advanced.is_ok()) return *advanced;
    // The program finds the fault, and looks why.
    fault_ = advanced.status();
    return Activity::kMoved;
}

}  // namespace pccl::transport::netplugin
