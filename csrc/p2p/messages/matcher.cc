// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/messages/matcher.h"

#include <algorithm>

#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/connection.h"
#include "csrc/p2p/transfers/transfer_request.h"

namespace pccl::p2p {
namespace {

Status given_up(const MessageArgs& args) {
    return Status::aborted(concat(
        "the ", args.direction == MessageDirection::kSend ? "send" : "receive", " was given up"));
}

Status too_long(const MessageRequest& send, const Wanted& wanted) {
    return Status::invalid_argument(concat("a message of ", send.args().extent.bytes,
                                           " bytes with tag ", wanted.tag,
                                           " does not fit into a receive of ", wanted.bytes));
}

}  // namespace

Status Matcher::post(const MessageRequestPtr& request) {
    PCCL_TRY([&] {
        const std::lock_guard lock(mutex_);
        return add_request(request);
    }());
    advance();
    return Status::ok();
}

Status Matcher::add_request(const MessageRequestPtr& request) {
    const MessageArgs& args = request->args();
    const bool sends = args.direction == MessageDirection::kSend;
    if ((sends ? waiting_sends_ : receives_.size()) >= kMost)
        return Status::resource_exhausted(concat(kMost, sends ? " sends" : " receives",
                                                 " wait for session \"", peer_.name, "\""));
    // lost() runs after the flag is set: either it finds the request, or this check finds the loss.
    if (request->through()->is_lost()) {
        end_request(*request, request->through()->why_lost());
        return Status::ok();
    }
    if (sends) {
        sends_[args.tag].push_back(request);
        ++waiting_sends_;
        match_tag(args.tag);
        return Status::ok();
    }
    const std::uint64_t number = next_number_++;
    receives_.emplace(number, request);
    deferred_sends_.add(request->through(),
                        Wanted{.number = number,
                               .tag = args.tag,
                               .offset = args.extent.offset,
                               .bytes = args.extent.bytes,
                               .memory = registered(*args.memory).descriptor()});
    return Status::ok();
}

void Matcher::match_tag(std::uint64_t tag) {
    const auto sends = sends_.find(tag);
    const auto places = places_.find(tag);
    if (sends == sends_.end() || places == places_.end()) return;
    while (!sends->second.empty() && !places->second.empty()) {
        matches_.push_back({sends->second.front(), std::move(places->second.front())});
        sends->second.pop_front();
        places->second.pop_front();
        --waiting_sends_;
        --waiting_places_;
    }
    if (sends->second.empty()) sends_.erase(sends);
    if (places->second.empty()) places_.erase(places);
}

void Matcher::end_request(MessageRequest& request, const Status& status, std::uint64_t bytes) {
    request.finish(status, bytes);
    request.through()->waiter().wake();
}

void Matcher::give_up(const MessageRequestPtr& request) {
    {
        const std::lock_guard lock(mutex_);
        if (request->is_complete() || request->is_given_up()) return;
        request->give_up();
        const MessageArgs& args = request->args();
        for (auto& [number, receive] : receives_)
            if (receive == request) deferred_sends_.add(request->through(), Withdrawn{number});
        for (const PendingWrite& pending_write : pending_writes_)
            if (pending_write.match.send == request) pending_write.write->give_up();
        const auto waiting = sends_.find(args.tag);
        if (waiting != sends_.end() && std::erase(waiting->second, request) > 0) {
            --waiting_sends_;
            if (waiting->second.empty()) sends_.erase(waiting);
            end_request(*request, given_up(args));
        }
    }
    advance();
    request->through()->waiter().wake();
}

bool Matcher::advance() {
    const std::unique_lock advancing(advancing_, std::try_to_lock);
    if (!advancing.owns_lock()) return false;
    std::vector<Match> matches;
    {
        const std::lock_guard lock(mutex_);
        matches.swap(matches_);
    }
    const bool began = !matches.empty();
    begin_all(std::move(matches));
    const bool sent = deferred_sends_.send();
    const std::lock_guard lock(mutex_);
    return end_pending_writes() || began || sent;
}

void Matcher::begin_all(std::vector<Match> matches) {
    for (Match& match : matches) {
        auto write = begin_write(match);
        const std::lock_guard lock(mutex_);
        if (!write.is_ok()) {
            deferred_sends_.add(match.place.through,
                                Failed{match.place.wanted.number, write.status()});
            end_request(*match.send,
                        write.status().with_context(match.place.through->peer().to_string()));
            continue;
        }
        if (match.send->is_given_up()) (*write)->give_up();
        match.send->hand_on_use();
        pending_writes_.push_back({std::move(match), std::move(*write)});
    }
}

Result<std::shared_ptr<TransferRequest>> Matcher::begin_write(const Match& match) {
    const MessageArgs& args = match.send->args();
    const Wanted& wanted = match.place.wanted;
    if (args.extent.bytes > wanted.bytes) return too_long(*match.send, wanted);
    PCCL_ASSIGN_OR_RETURN(auto plan, Plan::make({args.memory, args.extent},
                                                {imported(peer_, wanted.memory),
                                                 Extent{wanted.offset, args.extent.bytes}},
                                                args.chunk));
    PCCL_ASSIGN_OR_RETURN(const ConnectionPtr connection,
                          find_connection_(match.place.through, *plan));
    return connection->begin_transfer(
        {.op = transport::RmaOp::kWrite,
         .plan = std::move(plan),
         .notification = serialise(Sent{wanted.number, args.extent.bytes})});
}

bool Matcher::end_pending_writes() {
    return std::erase_if(pending_writes_, [this](const PendingWrite& pending_write) {
               if (!pending_write.write->is_complete()) return false;
               const auto& [send, place] = pending_write.match;
               const Status status = pending_write.write->status();
               if (!status.is_ok())
                   deferred_sends_.add(place.through, Failed{place.wanted.number, status});
               end_request(*send, status, send->args().extent.bytes);
               return true;
           }) > 0;
}

Status Matcher::receive(const ConnectionPtr& from, ControlMessage message) {
    const std::lock_guard lock(mutex_);
    return std::visit([&](const auto& kind) { return handle(from, kind); }, message);
}

void Matcher::preview(const ControlMessage& message) {
    const auto* const sent = std::get_if<Sent>(&message);
    if (sent == nullptr) return;
    const std::lock_guard lock(mutex_);
    const auto found = receives_.find(sent->number);
    if (found != receives_.end()) found->second->arrive();
}

Status Matcher::handle(const ConnectionPtr& from, const Wanted& wanted) {
    if (waiting_places_ >= kMost) return protocol_error("too many receives");
    if (mark_of(wanted.memory.id) != mark_of(peer_.incarnation))
        return protocol_error("memory that is another's");
    places_[wanted.tag].push_back({from, wanted});
    ++waiting_places_;
    match_tag(wanted.tag);
    from->waiter().wake();
    return Status::ok();
}

Status Matcher::handle(const ConnectionPtr&, const Sent& sent) {
    const MessageRequestPtr receive = take_receive(sent.number);
    if (receive == nullptr) return protocol_error("the number of a receive that does not exist");
    if (sent.bytes > receive->args().extent.bytes) {
        const Status wrong = protocol_error("more bytes than a receive has");
        end_request(*receive, wrong);
        return wrong;
    }
    end_request(*receive, Status::ok(), sent.bytes);
    return Status::ok();
}

Status Matcher::handle(const ConnectionPtr& from, const Failed& failed) {
    const MessageRequestPtr receive = take_receive(failed.number);
    if (receive == nullptr) return protocol_error("the number of a receive that does not exist");
    end_request(*receive, receive->is_given_up()
                              ? given_up(receive->args())
                              : failed.why.with_context(concat(from->peer().to_string(),
                                                               " does not send the message")));
    return Status::ok();
}

Status Matcher::handle(const ConnectionPtr& from, const Withdrawn& withdrawn) {
    for (auto& [tag, places] : places_) {
        const auto is_meant = [&](const PostedReceive& place) {
            return place.through == from && place.wanted.number == withdrawn.number;
        };
        if (std::erase_if(places, is_meant) == 0) continue;
        --waiting_places_;
        if (places.empty()) places_.erase(tag);
        deferred_sends_.add(from, Failed{withdrawn.number, Status::aborted("it was withdrawn")});
        from->waiter().wake();
        break;
    }
    // Otherwise the answer is already on its way.
    return Status::ok();
}

Matcher::MessageRequestPtr Matcher::take_receive(std::uint64_t number) {
    const auto found = receives_.find(number);
    if (found == receives_.end()) return nullptr;
    MessageRequestPtr receive = std::move(found->second);
    receives_.erase(found);
    return receive;
}

void Matcher::lost(const Connection& connection, const Status& why) {
    const std::lock_guard lock(mutex_);
    const auto depends = [&connection](const MessageRequestPtr& request) {
        return request->through().get() == &connection;
    };
    const auto end_all = [&](auto& requests, const auto& request_of) {
        return std::erase_if(requests, [&](const auto& each) {
            const MessageRequestPtr& request = request_of(each);
            if (!depends(request)) return false;
            end_request(*request, why);
            return true;
        });
    };
    for (auto& [tag, sends] : sends_)
        waiting_sends_ -= end_all(sends, [](const MessageRequestPtr& each) { return each; });
    end_all(receives_, [](const auto& each) { return each.second; });
    for (auto& [tag, places] : places_)
        waiting_places_ -= std::erase_if(
            places, [&](const PostedReceive& place) { return place.through.get() == &connection; });
    std::erase_if(sends_, [](const auto& each) { return each.second.empty(); });
    std::erase_if(places_, [](const auto& each) { return each.second.empty(); });
    deferred_sends_.forget(connection);
    std::erase_if(matches_, [&](const Match& each) {
        if (each.place.through.get() != &connection) return false;
        end_request(*each.send, why);
        return true;
    });
    end_pending_writes();
}

}  // namespace pccl::p2p
