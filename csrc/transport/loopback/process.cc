#include "csrc/transport/loopback/process.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "csrc/base/text.h"

namespace pccl::transport::loopback {

Result<std::shared_ptr<Process>> Process::create(int index, Waiter& waiter,
                                                 const FaultPlan& faults) {
    std::shared_ptr<Process> process(new Process(index, waiter, faults));
    process->ringing_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!process->ringing_.is_open()) return Status::from_errno(errno, "cannot create an eventfd");
    return process;
}

void Call::finish(Outcome result) {
    outcome.store(result);
    if (const auto process = caller.lock()) process->wake();
}

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

void Process::ring(const std::shared_ptr<Call>& call) {
    const std::lock_guard lock(mutex_);
    if (dead_) return call->outcome.store(Call::Outcome::kNobody);
    incoming_.push_back(call);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(ringing_.get(), &one, sizeof one);
}

std::deque<std::shared_ptr<Call>> Process::take_calls() {
    const std::lock_guard lock(mutex_);
    std::uint64_t drained = 0;
    [[maybe_unused]] const auto read_bytes = ::read(ringing_.get(), &drained, sizeof drained);
    return std::exchange(incoming_, {});
}

void Process::die() {
    std::deque<std::shared_ptr<Call>> unanswered;
    {
        const std::lock_guard lock(mutex_);
        dead_ = true;
        unanswered = std::exchange(incoming_, {});
        for (const Holding& holding : holdings_)
            if (const auto pipe = holding.pipe.lock()) pipe->leave(holding.end);
        holdings_.clear();
    }
    for (const auto& call : unanswered) call->finish(Call::Outcome::kNobody);
}

}  // namespace pccl::transport::loopback
