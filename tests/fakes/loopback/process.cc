// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/loopback/process.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "csrc/base/text/text.h"

namespace pccl::transport::loopback {
namespace {

void answer(LoopbackCall& call, ControlHost& host) {
    const LinkRequest& request = call.introduction.request;
    auto secret = host.secret_of(request.group);
    if (!host.serves(request)) secret.reset();
    if (secret == call.secret) {
        Arrival arrival{.socket = {}, .introduction = call.introduction};
        call.answer = take_up(arrival, host).value_or("");
        return call.finish(LoopbackCall::Outcome::kAccepted);
    }
    host.refused(to_string(TransportKind::kLoopback),
                 Status::invalid_argument(
                     concat("rank ", request.source, " does not prove the group's secret")));
    call.finish(LoopbackCall::Outcome::kRefused);
}

}  // namespace

Result<std::shared_ptr<Process>> Process::create(int index, Waiter& waiter,
                                                 const FaultPlan& faults) {
    std::shared_ptr<Process> process(new Process(index, waiter, faults));
    process->ringing_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!process->ringing_.is_open()) return Status::from_errno(errno, "cannot create an eventfd");
    return process;
}

void LoopbackCall::finish(Outcome result) {
    outcome.store(result);
    if (const auto process = caller.lock()) process->wake();
}

Result<bool> LoopbackCall::is_accepted() const {
    switch (outcome.load()) {
        case Outcome::kPending:
            return false;
        case Outcome::kAccepted:
            return true;
        case Outcome::kRefused:
            return Status::peer_lost(peer(), concat(name(), ": it refused the connection"));
        case Outcome::kNobody:
            break;
    }
    return Status::peer_lost(peer(), concat(name(), ": nobody is there"));
}

Status LoopbackCall::timeout_error() const {
    return Status::timeout(concat(name(), " did not answer in time"), peer());
}

std::string LoopbackCall::name() const { return concat("rank ", peer(), " at ", where); }

void Process::wake() {
    const std::lock_guard lock(mutex_);
    if (!dead_) waiter_.wake();
}

Status Process::live() {
    if (calls_.fetch_add(1) + 1 == last_call_) die();
    if (!dead_) return Status::ok();
    return Status::aborted(concat("process ", index_, " of the loopback fabric is dead"));
}

void Process::hold(const std::shared_ptr<Pipe>& pipe, Pipe::End end) {
    const std::lock_guard lock(mutex_);
    if (dead_) return pipe->leave(end);
    pipe->join(end, waiter_, memory_);
    std::erase_if(holdings_, [](const Holding& holding) { return holding.pipe.expired(); });
    holdings_.push_back({pipe, end});
}

void Process::ring(const std::shared_ptr<LoopbackCall>& call) {
    {
        const std::lock_guard lock(mutex_);
        if (dead_) return call->outcome.store(LoopbackCall::Outcome::kNobody);
        incoming_.push_back(call);
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(ringing_.get(), &one, sizeof one);
    }
    if (ControlHost* const host = inline_host) answer_calls(*host);
}

void Process::answer_calls(ControlHost& host) {
    for (const auto& call : take_calls()) answer(*call, host);
}

std::deque<std::shared_ptr<LoopbackCall>> Process::take_calls() {
    const std::lock_guard lock(mutex_);
    std::uint64_t drained = 0;
    [[maybe_unused]] const auto read_bytes = ::read(ringing_.get(), &drained, sizeof drained);
    return std::exchange(incoming_, {});
}

void Process::die() {
    std::deque<std::shared_ptr<LoopbackCall>> unanswered;
    {
        const std::lock_guard lock(mutex_);
        dead_ = true;
        unanswered = std::exchange(incoming_, {});
        for (const Holding& holding : holdings_)
            if (const auto pipe = holding.pipe.lock()) pipe->leave(holding.end);
        holdings_.clear();
    }
    for (const auto& call : unanswered) call->finish(LoopbackCall::Outcome::kNobody);
}

}  // namespace pccl::transport::loopback
