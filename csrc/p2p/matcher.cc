#include "csrc/p2p/matcher.h"

#include <algorithm>

#include "csrc/base/text.h"
#include "csrc/p2p/connection.h"
#include "csrc/p2p/task.h"

namespace pccl::p2p {
namespace {

Status given_up(const MessageOrder& order) {
    return Status::aborted(
        concat("the ", order.direction == Direction::kSend ? "send" : "receive", " was given up"));
}

Status too_long(const Posting& send, const Wanted& wanted) {
    return Status::invalid_argument(concat("a message of ", send.order().block.bytes,
                                           " bytes with tag ", wanted.tag,
                                           " does not fit into a receive of ", wanted.bytes));
}

}  // namespace

Status Matcher::post(const PostingPtr& posting) {
    PCCL_TRY([&] {
        const std::lock_guard lock(mutex_);
        return add(posting);
    }());
    advance();
    return Status::ok();
}

Status Matcher::add(const PostingPtr& posting) {
    const MessageOrder& order = posting->order();
    const bool sends = order.direction == Direction::kSend;
    if ((sends ? waiting_sends_ : receives_.size()) >= kMost)
        return Status::resource_exhausted(concat(kMost, sends ? " sends" : " receives",
                                                 " wait for session \"", peer_.name, "\""));
    // lost() comes after that: either it finds the posting, or this finds the loss.
    if (posting->through()->is_lost()) {
        end(*posting, posting->through()->why_lost());
        return Status::ok();
    }
    if (sends) {
        sends_[order.tag].push_back(posting);
        ++waiting_sends_;
        match(order.tag);
        return Status::ok();
    }
    const std::uint64_t number = next_number_++;
    receives_.emplace(number, posting);
    sayings_.add(posting->through(), Wanted{.number = number,
                                            .tag = order.tag,
                                            .offset = order.block.offset,
                                            .bytes = order.block.bytes,
                                            .memory = order.memory->descriptor()});
    return Status::ok();
}

void Matcher::match(std::uint64_t tag) {
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

void Matcher::end(Posting& posting, const Status& status, std::uint64_t bytes) {
    posting.finish(status, bytes);
    posting.through()->waiter().wake();
}

void Matcher::give_up(const PostingPtr& posting) {
    {
        const std::lock_guard lock(mutex_);
        if (posting->is_complete() || posting->is_given_up()) return;
        posting->give_up();
        const MessageOrder& order = posting->order();
        for (auto& [number, receive] : receives_)
            if (receive == posting) sayings_.add(posting->through(), Withdrawn{number});
        for (const Flight& flight : flights_)
            if (flight.match.send == posting) flight.write->give_up();
        const auto waiting = sends_.find(order.tag);
        if (waiting != sends_.end() && std::erase(waiting->second, posting) > 0) {
            --waiting_sends_;
            if (waiting->second.empty()) sends_.erase(waiting);
            end(*posting, given_up(order));
        }
    }
    advance();
    posting->through()->waiter().wake();
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
    const bool said = sayings_.say();
    const std::lock_guard lock(mutex_);
    return end_flights() || began || said;
}

void Matcher::begin_all(std::vector<Match> matches) {
    for (Match& match : matches) {
        auto write = this->write(match);
        const std::lock_guard lock(mutex_);
        if (!write.is_ok()) {
            sayings_.add(match.place.through, Failed{match.place.wanted.number, write.status()});
            end(*match.send, write.status().with_context(match.place.through->peer().to_string()));
            continue;
        }
        if (match.send->is_given_up()) (*write)->give_up();
        match.send->hand_on_use();
        flights_.push_back({std::move(match), std::move(*write)});
    }
}

Result<std::shared_ptr<Task>> Matcher::write(const Match& match) {
    const MessageOrder& order = match.send->order();
    const Wanted& wanted = match.place.wanted;
    if (order.block.bytes > wanted.bytes) return too_long(*match.send, wanted);
    PCCL_ASSIGN_OR_RETURN(
        auto plan,
        Plan::make({order.memory, order.block},
                   {{peer_, wanted.memory}, Block{wanted.offset, order.block.bytes}}, order.chunk));
    PCCL_ASSIGN_OR_RETURN(const ConnectionPtr way, find_way_(match.place.through, wanted.memory));
    return way->begin({.op = transport::RmaOp::kWrite,
                       .plan = std::move(plan),
                       .notification = serialise(Sent{wanted.number, order.block.bytes})});
}

bool Matcher::end_flights() {
    return std::erase_if(flights_, [this](const Flight& flight) {
               if (!flight.write->is_complete()) return false;
               const auto& [send, place] = flight.match;
               const Status status = flight.write->status();
               if (!status.is_ok())
                   sayings_.add(place.through, Failed{place.wanted.number, status});
               end(*send, status, send->order().block.bytes);
               return true;
           }) > 0;
}

Status Matcher::hear(const ConnectionPtr& from, PeerWord word) {
    const std::lock_guard lock(mutex_);
    return std::visit([&](const auto& kind) { return hear_kind(from, kind); }, word);
}

void Matcher::foresee(const PeerWord& word) {
    const auto* const sent = std::get_if<Sent>(&word);
    if (sent == nullptr) return;
    const std::lock_guard lock(mutex_);
    const auto found = receives_.find(sent->number);
    if (found != receives_.end()) found->second->arrive();
}

Status Matcher::hear_kind(const ConnectionPtr& from, const Wanted& wanted) {
    if (waiting_places_ >= kMost) return nonsense("too many receives");
    if (mark_of(wanted.memory.id) != mark_of(peer_.incarnation))
        return nonsense("memory that is another's");
    places_[wanted.tag].push_back({from, wanted});
    ++waiting_places_;
    match(wanted.tag);
    from->waiter().wake();
    return Status::ok();
}

Status Matcher::hear_kind(const ConnectionPtr&, const Sent& sent) {
    const PostingPtr receive = take_receive(sent.number);
    if (receive == nullptr) return nonsense("a receive that there is not");
    if (sent.bytes > receive->order().block.bytes) {
        const Status wrong = nonsense("more bytes than a receive has");
        end(*receive, wrong);
        return wrong;
    }
    end(*receive, Status::ok(), sent.bytes);
    return Status::ok();
}

Status Matcher::hear_kind(const ConnectionPtr& from, const Failed& failed) {
    const PostingPtr receive = take_receive(failed.number);
    if (receive == nullptr) return nonsense("a receive that there is not");
    end(*receive, receive->is_given_up()
                      ? given_up(receive->order())
                      : failed.why.with_context(
                            concat(from->peer().to_string(), " does not send the message")));
    return Status::ok();
}

Status Matcher::hear_kind(const ConnectionPtr& from, const Withdrawn& withdrawn) {
    for (auto& [tag, places] : places_) {
        const auto is_meant = [&](const Place& place) {
            return place.through == from && place.wanted.number == withdrawn.number;
        };
        if (std::erase_if(places, is_meant) == 0) continue;
        --waiting_places_;
        if (places.empty()) places_.erase(tag);
        sayings_.add(from, Failed{withdrawn.number, Status::aborted("it was withdrawn")});
        from->waiter().wake();
        break;
    }
    // Else the answer is under way already.
    return Status::ok();
}

Matcher::PostingPtr Matcher::take_receive(std::uint64_t number) {
    const auto found = receives_.find(number);
    if (found == receives_.end()) return nullptr;
    PostingPtr receive = std::move(found->second);
    receives_.erase(found);
    return receive;
}

void Matcher::lost(const Connection& connection, const Status& why) {
    const std::lock_guard lock(mutex_);
    const auto depends = [&connection](const PostingPtr& posting) {
        return posting->through().get() == &connection;
    };
    const auto end_all = [&](auto& postings, const auto& posting_of) {
        return std::erase_if(postings, [&](const auto& each) {
            const PostingPtr& posting = posting_of(each);
            if (!depends(posting)) return false;
            end(*posting, why);
            return true;
        });
    };
    for (auto& [tag, sends] : sends_)
        waiting_sends_ -= end_all(sends, [](const PostingPtr& each) { return each; });
    end_all(receives_, [](const auto& each) { return each.second; });
    for (auto& [tag, places] : places_)
        waiting_places_ -= std::erase_if(
            places, [&](const Place& place) { return place.through.get() == &connection; });
    std::erase_if(sends_, [](const auto& each) { return each.second.empty(); });
    std::erase_if(places_, [](const auto& each) { return each.second.empty(); });
    sayings_.forget(connection);
    std::erase_if(matches_, [&](const Match& each) {
        if (each.place.through.get() != &connection) return false;
        end(*each.send, why);
        return true;
    });
    end_flights();
}

}  // namespace pccl::p2p
