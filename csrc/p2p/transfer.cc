#include "csrc/p2p/transfer.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/p2p/connection.h"
#include "csrc/p2p/matcher.h"
#include "csrc/p2p/posting.h"
#include "csrc/p2p/session_core.h"

namespace pccl::p2p {
namespace {

std::string text_of(Direction direction) {
    return direction == Direction::kSend ? "send" : "receive";
}

}  // namespace

Message::Message(std::shared_ptr<Posting> posting, std::shared_ptr<Matcher> matcher)
    : posting_(std::move(posting)), matcher_(std::move(matcher)) {}

bool Message::is_complete() const { return posting_->is_complete(); }

Status Message::status() const { return posting_->status(); }

std::uint64_t Message::bytes() const { return posting_->bytes(); }

std::uint64_t Message::tag() const { return posting_->order().tag; }

bool Message::is_send() const { return posting_->order().direction == Direction::kSend; }

const SessionId& Message::peer() const { return posting_->through()->peer().id; }

std::string Message::to_string() const {
    const MessageOrder& order = posting_->order();
    return concat("a ", text_of(order.direction), " of ", order.block.bytes, " bytes with tag ",
                  order.tag);
}

Status Message::wait(Deadline deadline) const {
    carry_until(deadline);  // may end it even as it leaves
    if (is_complete()) return status();
    const ConnectionInfo& peer = posting_->through()->peer();
    return Status::timeout(concat(peer.to_string(), ": ", to_string(), " has not ended in time"))
        .with_process(peer.process);
}

void Message::carry_until(Deadline deadline) const {
    Connection& connection = *posting_->through();
    Attendance attendance(connection);
    transport::Backoff backoff(connection.waiter());
    while (!is_complete()) {
        const bool moved = attendance.carry();
        if (matcher_->advance() || moved) {
            backoff.reset();
            continue;
        }
        if (is_complete() || deadline.passed()) return;
        backoff.pause(connection.longest_pause());
        if (backoff.slept()) attendance.look();
    }
}

void Message::release() const { matcher_->give_up(posting_); }

struct Transfer::State {
    State(std::shared_ptr<SessionCore> own, std::string other, const TransferOptions& wanted)
        : core(std::move(own)), peer(std::move(other)), options(wanted) {}

    /// Those that have not ended. Keeps the first error of those that have.
    std::vector<Message> under_way() {
        const std::lock_guard lock(mutex);
        std::erase_if(messages, [this](const Message& message) {
            if (!message.is_complete()) return false;
            if (failure.is_ok()) failure = message.status();
            return true;
        });
        return messages;
    }

    const ForkMark made_in;
    const std::shared_ptr<SessionCore> core;
    const std::string peer;
    const TransferOptions options;
    std::mutex mutex;               // guards what follows
    std::vector<Message> messages;  // in the order of their posts
    Status failure;
};

Transfer::Transfer(std::shared_ptr<SessionCore> core, std::string peer,
                   const TransferOptions& options)
    : state_(std::make_shared<State>(std::move(core), std::move(peer), options)) {}

Result<Message> Transfer::post_send(const LocalBlock& from, std::uint64_t tag, Deadline deadline) {
    return post({Direction::kSend, tag, from.memory, from.block, state_->options.chunk}, deadline);
}

Result<Message> Transfer::post_recv(const LocalBlock& into, std::uint64_t tag, Deadline deadline) {
    return post({Direction::kReceive, tag, into.memory, into.block}, deadline);
}

Result<Message> Transfer::post(MessageOrder order, Deadline deadline) {
    if (state_->made_in.is_child())
        return Status::unavailable("this transfer is of the process that this one was forked from");
    PCCL_TRY(Blocks(order.block).check_within(order.memory->memory().bytes));
    PCCL_TRY(await_room(order, deadline));
    PCCL_ASSIGN_OR_RETURN(auto connection, state_->core->connection_for(state_->peer, order));
    PCCL_TRY(order.memory->begin_use());
    const auto memory = order.memory;
    const auto matcher = state_->core->matcher_for(connection->peer().id);
    const auto posting = std::make_shared<Posting>(std::move(order), std::move(connection));
    if (const Status posted = matcher->post(posting); !posted.is_ok()) {
        memory->end_use();
        return posted;
    }
    Message message(posting, matcher);
    const std::lock_guard lock(state_->mutex);
    state_->messages.push_back(message);
    return message;
}

Status Transfer::await_room(const MessageOrder& order, Deadline deadline) {
    const bool sends = order.direction == Direction::kSend;
    Help help(*state_->core);
    transport::Backoff backoff(*state_->core->waiter());
    for (;;) {
        std::vector<Message> alike = state_->under_way();
        std::erase_if(alike, [sends](const Message& each) { return each.is_send() != sends; });
        if (alike.size() < state_->options.window) return Status::ok();
        if (help.carry()) {
            backoff.reset();
            continue;
        }
        if (deadline.passed())
            return Status::timeout(concat(
                "session \"", state_->peer, "\" takes its time: ", alike.size(), " ",
                text_of(order.direction), "s have not ended, as many as the window has, the first ",
                alike.front().to_string()));
        backoff.pause();
    }
}

const std::string& Transfer::peer() const { return state_->peer; }

bool Transfer::is_complete() const { return state_->under_way().empty(); }

Status Transfer::await_end(Deadline deadline) {
    for (const Message& message : state_->under_way()) {
        const Status ended = message.wait(deadline);
        if (!message.is_complete()) return ended;
    }
    return Status::ok();
}

Status Transfer::take_error() {
    static_cast<void>(state_->under_way());
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->failure, Status::ok());
}

Status Transfer::wait(Deadline deadline) {
    PCCL_TRY(await_end(deadline));
    return take_error();
}

void Transfer::release() {
    for (const Message& message : state_->under_way()) message.release();
}

}  // namespace pccl::p2p
