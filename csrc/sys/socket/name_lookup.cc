// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/name_lookup.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::sys {
namespace {

double lookup_seconds(TimePoint begun) {
    const auto waited = std::chrono::round<std::chrono::milliseconds>(system_clock().now() - begun);
    return static_cast<double>(waited.count()) / 1000;
}

Result<Addresses> never_empty(const std::string& host, Result<Addresses> found) {
    if (found.is_ok() && found->empty())
        return Status::unavailable(concat("\"", host, "\" has no address"));
    return found;
}

}  // namespace

struct NameLookup::Answer {
    std::mutex mutex;
    std::condition_variable arrived;
    std::optional<Result<Addresses>> found;  // guarded by mutex
};

NameLookup::NameLookup(std::string host, std::uint16_t port, const Resolver& resolver)
    : host_(std::move(host)), begun_(system_clock().now()), answer_(std::make_shared<Answer>()) {
    if (const auto literal = Address::from_ip(host_, port); literal.is_ok()) {
        answer_->found = Addresses{*literal};
        return;
    }
    const auto look = [answer = answer_, host = host_, port, resolver] {
        auto found = never_empty(host, resolver ? resolver(host, port) : resolve(host, port));
        const std::lock_guard lock(answer->mutex);
        answer->found = std::move(found);
        answer->arrived.notify_all();
    };
    BackgroundThread("pccl-name", look).release();
}

std::optional<Result<Addresses>> NameLookup::poll() const {
    const std::lock_guard lock(answer_->mutex);
    return answer_->found;
}

Result<Addresses> NameLookup::wait(Deadline deadline) const {
    std::unique_lock lock(answer_->mutex);
    while (!answer_->found) {
        if (deadline.passed())
            return Status::timeout(concat("the name service has not returned the address of \"",
                                          host_, "\" within ", lookup_seconds(begun_), " s"));
        answer_->arrived.wait_for(lock, deadline.slice());
    }
    return *answer_->found;
}

Result<Addresses> resolve(const std::string& host, std::uint16_t port, Deadline deadline) {
    return NameLookup(host, port).wait(deadline);
}

}  // namespace pccl::sys
