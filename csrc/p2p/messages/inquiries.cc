// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/messages/inquiries.h"

#include <algorithm>

#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/connection.h"

namespace pccl::p2p {

void Inquiry::complete(Result<RemoteMemory> answer) {
    answer_ = std::move(answer);
    answered_.store(true, std::memory_order_release);
}

template <typename MessageFor>
Result<std::shared_ptr<const Inquiry>> Inquiries::open(std::shared_ptr<Inquiry> inquiry,
                                                       const MessageFor& message_for) {
    const std::shared_ptr<Connection>& to = inquiry->to();
    {
        const std::lock_guard lock(mutex_);
        if (count_to(*to) >= kMost)
            return Status::resource_exhausted(
                concat(kMost, " questions wait for ", to->peer().to_string(), " to answer"));
        // lost() runs after the flag is set: either it finds the inquiry, or this check finds the
        // loss.
        if (to->is_lost()) {
            inquiry->complete(to->why_lost());
            return std::shared_ptr<const Inquiry>(std::move(inquiry));
        }
        const std::uint64_t number = next_number_++;
        open_.emplace(number, inquiry);
        deferred_sends_.add(to, message_for(number));
    }
    advance();
    return std::shared_ptr<const Inquiry>(std::move(inquiry));
}

Result<std::shared_ptr<const Inquiry>> Inquiries::query(const std::shared_ptr<Connection>& to,
                                                        const std::string& name) {
    return open(std::make_shared<Inquiry>(to, name),
                [&](std::uint64_t number) { return Query{number, name}; });
}

Result<std::shared_ptr<const Inquiry>> Inquiries::ping(const std::shared_ptr<Connection>& to) {
    return open(std::make_shared<Inquiry>(to, std::string()),
                [](std::uint64_t number) { return Ping{number}; });
}

std::size_t Inquiries::count_to(const Connection& peer) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        open_, [&peer](const auto& each) { return each.second->to().get() == &peer; }));
}

Status Inquiries::receive(const std::shared_ptr<Connection>& from, ControlMessage message) {
    return std::visit([&](const auto& kind) { return handle(from, kind); }, message);
}

Status Inquiries::handle(const std::shared_ptr<Connection>& from, const Query& requested) {
    const auto found = catalog_.find(requested.name);
    Reply answered{.number = requested.number};
    if (found.is_ok())
        answered.memory = *found;
    else
        answered.why = found.status().message();
    return answer(from, std::move(answered));
}

Status Inquiries::handle(const std::shared_ptr<Connection>& from, const Ping& ping) {
    return answer(from, {.number = ping.number, .why = "it has no request of this name"});
}

Status Inquiries::answer(const std::shared_ptr<Connection>& to, Reply answered) {
    if (deferred_sends_.count_to(*to) >= kMost) return protocol_error("too many questions");
    deferred_sends_.add(to, std::move(answered));
    waiter_->wake();
    return Status::ok();
}

Status Inquiries::handle(const std::shared_ptr<Connection>& from, const Reply& answered) {
    const std::lock_guard lock(mutex_);
    const auto open = open_.find(answered.number);
    if (open == open_.end() || open->second->to() != from)
        return protocol_error("an answer to a question that does not exist");
    const ConnectionInfo& peer = from->peer();
    if (answered.memory && mark_of(answered.memory->id) != mark_of(peer.id.incarnation))
        return protocol_error("memory that is another's");
    if (answered.memory)
        open->second->complete(imported(peer.id, *answered.memory));
    else
        open->second->complete(Status::unavailable(answered.why)
                                   .with_context(peer.to_string())
                                   .with_process(peer.process));
    open_.erase(open);
    waiter_->wake();
    return Status::ok();
}

void Inquiries::lost(const Connection& connection, const Status& why) {
    const std::lock_guard lock(mutex_);
    std::erase_if(open_, [&](const auto& each) {
        if (each.second->to().get() != &connection) return false;
        each.second->complete(why);
        return true;
    });
    deferred_sends_.forget(connection);
    waiter_->wake();
}

}  // namespace pccl::p2p
