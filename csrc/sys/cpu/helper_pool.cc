// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/helper_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace pccl::sys {

HelperPool& HelperPool::of_process() {
    // Is never deleted: a thread may still use it while the process ends.
    static auto* const pool = new HelperPool();
    return *pool;
}

HelperPool::~HelperPool() {
    {
        const std::lock_guard lock(mutex_);
        for (const auto& helper : helpers_) {
            helper->is_ended = true;
            helper->offered.notify_one();
        }
    }
    helpers_.clear();
}

void HelperPool::run(int helpers, const CoreSet& cores, const Work& work) {
    Job job{.work = &work, .running = 0, .returned = {}};
    std::vector<Helper*> asked;
    if (helpers > 0 && !made_in_.is_child()) asked = offer(job, helpers, cores);
    work(0);
    if (!asked.empty()) withdraw(job, asked);
}

std::vector<HelperPool::Helper*> HelperPool::offer(Job& job, int helpers, const CoreSet& cores) {
    std::vector<Helper*> asked;
    const std::lock_guard lock(mutex_);
    while (std::cmp_less(asked.size(), helpers)) {
        Helper* const helper = idle_.empty() ? new_helper(cores) : idle_.back();
        if (helper == nullptr) break;
        if (!idle_.empty()) idle_.pop_back();
        helper->job = &job;
        asked.push_back(helper);
        helper->worker = static_cast<int>(asked.size());
        helper->offered.notify_one();
    }
    return asked;
}

/// Returns null where there are as many as may be, or the system gives no more.
HelperPool::Helper* HelperPool::new_helper(const CoreSet& cores) {
    if (std::cmp_greater_equal(helpers_.size(), kMost)) return nullptr;
    auto helper = std::make_unique<Helper>();
    Helper* const made = helper.get();
    try {
        made->thread = std::make_unique<BackgroundThread>(
            "pccl-helper", [this, made, cores] { help(*made, cores); });
    } catch (const std::system_error&) {
        return nullptr;
    }
    helpers_.push_back(std::move(helper));
    return made;
}

/// Takes the job back from helpers that have not begun, and waits for the others.
void HelperPool::withdraw(const Job& job, const std::vector<Helper*>& asked) {
    std::unique_lock lock(mutex_);
    for (Helper* const helper : asked) {
        if (helper->job != &job) continue;
        helper->job = nullptr;
        idle_.push_back(helper);
    }
    auto& returned = const_cast<Job&>(job).returned;
    returned.wait(lock, [&] { return job.running == 0; });
}

void HelperPool::help(Helper& helper, const CoreSet& cores) {
    // Where the cores are forbidden by now, the thread stays where it is.
    if (cores.any()) static_cast<void>(run_on(cores));
    std::unique_lock lock(mutex_);
    while (!helper.is_ended) {
        if (helper.job == nullptr) {
            helper.offered.wait(lock);
            continue;
        }
        Job& job = *std::exchange(helper.job, nullptr);
        const int worker = helper.worker;
        ++job.running;
        lock.unlock();
        (*job.work)(worker);
        lock.lock();
        idle_.push_back(&helper);
        if (--job.running == 0) job.returned.notify_one();
    }
}

}  // namespace pccl::sys
