// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <pccl/transfer.h>
#include "csrc/base/fork_checked.h"
#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/connection.h"
#include "csrc/p2p/messages/matcher.h"
#include "csrc/p2p/messages/message_request.h"
#include "csrc/p2p/session/session_core.h"
#include "csrc/p2p/transfers/transfer_request.h"

namespace pccl::p2p {
namespace {

std::string text_of(MessageDirection direction) {
    return direction == MessageDirection::kSend ? "send" : "receive";
}

/// Returns whether the message has ended; if so, the program has now seen it.
bool has_ended(MessageRequest& request) {
    if (!request.is_complete()) return false;
    request.consume();
    return true;
}

void progress_message_until(MessageRequest& request, Matcher& matcher, Deadline deadline) {
    ProgressGuard guard(*request.through());
    const auto progress = [&] {
        const bool moved = guard.progress();
        return matcher.advance() || moved;
    };
    guard.progress_until(deadline, progress, [&] { return has_ended(request); });
}

ForkChecked<MessageRequest> checked_message(const std::shared_ptr<MessageRequest>& request) {
    return {request->made_in(), *request, "message"};
}

}  // namespace

Message::Message(std::shared_ptr<MessageRequest> request, std::shared_ptr<Matcher> matcher)
    : request_(std::move(request)), matcher_(std::move(matcher)) {}

Status Message::check_usable() const { return checked_message(request_).check(); }

bool Message::is_complete() const {
    return checked_message(request_).use(
        true, [](MessageRequest& request) { return has_ended(request); });
}

MessageStage Message::stage() const {
    return checked_message(request_).use(
        MessageStage::kPosted, [](const MessageRequest& request) { return request.stage(); });
}

Status Message::status() const {
    PCCL_ASSIGN_OR_RETURN(const MessageRequest* const request, checked_message(request_).get());
    return request->status();
}

std::uint64_t Message::bytes() const {
    return checked_message(request_).use(
        std::uint64_t{0}, [](const MessageRequest& request) { return request.bytes(); });
}

std::uint64_t Message::tag() const { return request_->args().tag; }

bool Message::is_send() const { return request_->args().direction == MessageDirection::kSend; }

const SessionId& Message::peer() const { return request_->through()->peer().id; }

std::string Message::to_string() const {
    const MessageArgs& args = request_->args();
    return concat("a ", text_of(args.direction), " of ", args.extent.bytes, " bytes with tag ",
                  args.tag);
}

Status Message::wait(Deadline deadline) const {
    PCCL_ASSIGN_OR_RETURN(MessageRequest* const request, checked_message(request_).get());
    progress_message_until(*request, *matcher_, deadline);  // its end may complete the request
    if (has_ended(*request)) return request->status();
    const ConnectionInfo& peer = request->through()->peer();
    return Status::timeout(concat(peer.to_string(), ": ", to_string(), " has not ended in time"))
        .with_process(peer.process);
}

void Message::release() const {
    checked_message(request_).use([this](MessageRequest&) { matcher_->give_up(request_); });
}

enum class Transfer::Kind : std::uint8_t { kSend, kReceive, kRead, kWrite };

/// One posted message or transfer.
class Transfer::Posted {
   public:
    Posted(Kind kind, std::variant<Message, Work> handle)
        : kind_(kind), handle_(std::move(handle)) {}

    [[nodiscard]] static std::string_view plural(Kind kind) {
        constexpr std::array<std::string_view, 4> kPlurals{"sends", "receives", "reads", "writes"};
        return kPlurals[static_cast<std::size_t>(kind)];
    }
    [[nodiscard]] Kind kind() const { return kind_; }
    [[nodiscard]] bool is_complete() const {
        return std::visit([](const auto& handle) { return handle.is_complete(); }, handle_);
    }
    [[nodiscard]] Status status() const {
        return std::visit([](const auto& handle) { return handle.status(); }, handle_);
    }
    [[nodiscard]] Status wait(Deadline deadline) const {
        return std::visit([&](const auto& handle) { return handle.wait(deadline); }, handle_);
    }
    void release() const {
        std::visit([](const auto& handle) { handle.release(); }, handle_);
    }
    [[nodiscard]] std::string to_string() const {
        return std::visit([](const auto& handle) { return handle.to_string(); }, handle_);
    }

   private:
    Kind kind_;
    std::variant<Message, Work> handle_;
};

struct Transfer::State {
    State(std::shared_ptr<SessionCore> own, std::string other, const TransferOptions& wanted)
        : core(std::move(own)), peer(std::move(other)), options(wanted) {}

    void keep(Kind kind, std::variant<Message, Work> handle) {
        const std::lock_guard lock(mutex);
        all.emplace_back(kind, std::move(handle));
    }
    /// Returns those that have not ended. Keeps the first error of those that have.
    std::vector<Posted> under_way() {
        const std::lock_guard lock(mutex);
        std::erase_if(all, [this](const Posted& posted) {
            if (!posted.is_complete()) return false;
            if (failure.is_ok()) failure = posted.status();
            return true;
        });
        return all;
    }
    std::vector<Posted> under_way(Kind kind) {
        std::vector<Posted> alike = under_way();
        std::erase_if(alike, [kind](const Posted& each) { return each.kind() != kind; });
        return alike;
    }

    [[nodiscard]] ForkChecked<State> checked() { return {made_in, *this, "transfer"}; }

    const ForkMark made_in;
    const std::shared_ptr<SessionCore> core;
    const std::string peer;
    const TransferOptions options;
    std::mutex mutex;         // guards the members below
    std::vector<Posted> all;  // in the order of their posts
    Status failure;
};

Transfer::Transfer(std::shared_ptr<SessionCore> core, std::string peer,
                   const TransferOptions& options)
    : state_(std::make_shared<State>(std::move(core), std::move(peer), options)) {}

Status Transfer::check_usable() const { return state_->checked().check(); }

Result<Message> Transfer::post_send(const LocalExtent& from, std::uint64_t tag, Deadline deadline) {
    const std::uint64_t chunk = state_->options.chunk;
    return post({MessageDirection::kSend, tag, from.memory, from.extent, chunk}, deadline);
}

Result<Message> Transfer::post_recv(const LocalExtent& into, std::uint64_t tag, Deadline deadline) {
    return post({MessageDirection::kReceive, tag, into.memory, into.extent}, deadline);
}

Result<Work> Transfer::post_read(const LocalExtent& into, const RemoteExtent& from,
                                 Deadline deadline, std::span<const std::byte> notification) {
    PCCL_ASSIGN_OR_RETURN(TransferArgs args, this->args(into, from, notification));
    args.op = RmaOp::kRead;
    return post(std::move(args), deadline);
}

Result<Work> Transfer::post_write(const LocalExtent& from, const RemoteExtent& to,
                                  Deadline deadline, std::span<const std::byte> notification) {
    PCCL_ASSIGN_OR_RETURN(TransferArgs args, this->args(from, to, notification));
    args.op = RmaOp::kWrite;
    return post(std::move(args), deadline);
}

Result<TransferArgs> Transfer::args(const LocalExtent& here, const RemoteExtent& there,
                                    std::span<const std::byte> notification) const {
    PCCL_ASSIGN_OR_RETURN(const State* const state, state_->checked().get());
    const std::string& owner = there.memory.owner().name;
    if (owner != state->peer)
        return Status::invalid_argument(concat(
            "memory of session \"", owner, "\" in a transfer with session \"", state->peer, "\""));
    TransferArgs args;
    PCCL_ASSIGN_OR_RETURN(args.notification, payload_of(notification));
    PCCL_ASSIGN_OR_RETURN(
        args.plan,
        Plan::make({here.memory, here.extent}, {there.memory, there.extent}, state->options.chunk));
    return args;
}

Result<Message> Transfer::post(MessageArgs args, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(State* const state, state_->checked().get());
    PCCL_TRY(Extents(args.extent).check_within(args.memory->bytes()));
    const Kind kind = args.direction == MessageDirection::kSend ? Kind::kSend : Kind::kReceive;
    PCCL_TRY(await_room(*state, kind, deadline));
    PCCL_ASSIGN_OR_RETURN(auto connection, state->core->connection_for(state->peer, args));
    PCCL_TRY(registered(*args.memory).begin_use());
    const auto memory = args.memory;
    const auto matcher = state->core->matcher_for(connection->peer().id);
    const auto request = std::make_shared<MessageRequest>(std::move(args), std::move(connection));
    if (const Status posted = matcher->post(request); !posted.is_ok()) {
        registered(*memory).end_use();
        return posted;
    }
    Message message(request, matcher);
    state->keep(kind, message);
    return message;
}

Result<Work> Transfer::post(TransferArgs args, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(State* const state, state_->checked().get());
    const Kind kind = args.op == RmaOp::kRead ? Kind::kRead : Kind::kWrite;
    PCCL_TRY(await_room(*state, kind, deadline));
    PCCL_ASSIGN_OR_RETURN(auto request, state->core->begin_transfer(std::move(args)));
    Work work(std::move(request));
    state->keep(kind, work);
    return work;
}

Status Transfer::await_room(State& state, Kind kind, Deadline deadline) {
    std::vector<Posted> alike;
    const auto has_room = [&] {
        alike = state.under_way(kind);
        return alike.size() < state.options.window;
    };
    if (progress_until(*state.core, deadline, has_room)) return Status::ok();
    return Status::timeout(concat(
        "session \"", state.peer, "\" takes its time: ", alike.size(), " ", Posted::plural(kind),
        " have not ended, as many as the window has, the first ", alike.front().to_string()));
}

const std::string& Transfer::peer() const { return state_->peer; }

bool Transfer::is_complete() const {
    return state_->checked().use(true, [](State& state) { return state.under_way().empty(); });
}

Status Transfer::await_end(Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(State* const state, state_->checked().get());
    for (const Posted& posted : state->under_way()) {
        const Status ended = posted.wait(deadline);
        if (!posted.is_complete()) return ended;
    }
    return Status::ok();
}

Status Transfer::take_error() {
    PCCL_ASSIGN_OR_RETURN(State* const state, state_->checked().get());
    static_cast<void>(state->under_way());
    const std::lock_guard lock(state->mutex);
    return std::exchange(state->failure, Status::ok());
}

Status Transfer::wait(Deadline deadline) {
    PCCL_TRY(await_end(deadline));
    return take_error();
}

void Transfer::release() {
    state_->checked().use([](State& state) {
        for (const Posted& posted : state.under_way()) posted.release();
    });
}

}  // namespace pccl::p2p
