#include "csrc/p2p/transfer.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/p2p/connection.h"
#include "csrc/p2p/matcher.h"
#include "csrc/p2p/posting.h"
#include "csrc/p2p/session_core.h"
#include "csrc/p2p/task.h"

namespace pccl::p2p {
namespace {

std::string text_of(Direction direction) {
    return direction == Direction::kSend ? "send" : "receive";
}

/// What its program knows from now on, if so.
bool has_ended(Posting& posting) {
    if (!posting.is_complete()) return false;
    posting.consume();
    return true;
}

void carry_message_until(Posting& posting, Matcher& matcher, Deadline deadline) {
    Attendance attendance(*posting.through());
    const auto carry = [&] {
        const bool moved = attendance.carry();
        return matcher.advance() || moved;
    };
    attendance.carry_until(deadline, carry, [&] { return has_ended(posting); });
}

}  // namespace

Message::Message(std::shared_ptr<Posting> posting, std::shared_ptr<Matcher> matcher)
    : posting_(std::move(posting), "message"), matcher_(std::move(matcher), "message") {}

bool Message::is_complete() const {
    return posting_.use(true, [](Posting& posting) { return has_ended(posting); });
}

MessageStage Message::stage() const {
    return posting_.use(MessageStage::kPosted,
                        [](const Posting& posting) { return posting.stage(); });
}

Status Message::status() const {
    PCCL_ASSIGN_OR_RETURN(const Posting* const posting, posting_.get());
    return posting->status();
}

std::uint64_t Message::bytes() const {
    return posting_.use(std::uint64_t{0}, [](const Posting& posting) { return posting.bytes(); });
}

std::uint64_t Message::tag() const { return posting_.constants().order().tag; }

bool Message::is_send() const { return posting_.constants().order().direction == Direction::kSend; }

const SessionId& Message::peer() const { return posting_.constants().through()->peer().id; }

std::string Message::to_string() const {
    const MessageOrder& order = posting_.constants().order();
    return concat("a ", text_of(order.direction), " of ", order.block.bytes, " bytes with tag ",
                  order.tag);
}

Status Message::wait(Deadline deadline) const {
    PCCL_ASSIGN_OR_RETURN(Posting* const posting, posting_.get());
    PCCL_ASSIGN_OR_RETURN(Matcher* const matcher, matcher_.get());
    carry_message_until(*posting, *matcher, deadline);  // may end it even as it leaves
    if (has_ended(*posting)) return posting->status();
    const ConnectionInfo& peer = posting->through()->peer();
    return Status::timeout(concat(peer.to_string(), ": ", to_string(), " has not ended in time"))
        .with_process(peer.process);
}

void Message::release() const {
    matcher_.use([this](Matcher& matcher) { matcher.give_up(posting_.share()); });
}

enum class Transfer::Kind : std::uint8_t { kSend, kReceive, kRead, kWrite };

/// One that was posted, of any kind.
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
    /// Those that have not ended. Keeps the first error of those that have.
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

    const std::shared_ptr<SessionCore> core;
    const std::string peer;
    const TransferOptions options;
    std::mutex mutex;         // guards what follows
    std::vector<Posted> all;  // in the order of their posts
    Status failure;
};

Transfer::Transfer(std::shared_ptr<SessionCore> core, std::string peer,
                   const TransferOptions& options)
    : state_(std::make_shared<State>(std::move(core), std::move(peer), options), "transfer") {}

Result<Message> Transfer::post_send(const LocalBlock& from, std::uint64_t tag, Deadline deadline) {
    const std::uint64_t chunk = state_.constants().options.chunk;
    return post({Direction::kSend, tag, from.memory, from.block, chunk}, deadline);
}

Result<Message> Transfer::post_recv(const LocalBlock& into, std::uint64_t tag, Deadline deadline) {
    return post({Direction::kReceive, tag, into.memory, into.block}, deadline);
}

Result<Work> Transfer::post_read(const LocalBlock& into, const RemoteBlock& from, Deadline deadline,
                                 std::span<const std::byte> notification) {
    PCCL_ASSIGN_OR_RETURN(Order order, this->order(into, from, notification));
    order.op = transport::RmaOp::kRead;
    return post(std::move(order), deadline);
}

Result<Work> Transfer::post_write(const LocalBlock& from, const RemoteBlock& to, Deadline deadline,
                                  std::span<const std::byte> notification) {
    PCCL_ASSIGN_OR_RETURN(Order order, this->order(from, to, notification));
    order.op = transport::RmaOp::kWrite;
    return post(std::move(order), deadline);
}

Result<Order> Transfer::order(const LocalBlock& here, const RemoteBlock& there,
                              std::span<const std::byte> notification) const {
    PCCL_ASSIGN_OR_RETURN(const State* const state, state_.get());
    const std::string& owner = there.memory.owner.name;
    if (owner != state->peer)
        return Status::invalid_argument(concat(
            "memory of session \"", owner, "\" in a transfer with session \"", state->peer, "\""));
    Order order;
    PCCL_ASSIGN_OR_RETURN(order.notification, word_of(notification));
    PCCL_ASSIGN_OR_RETURN(
        order.plan,
        Plan::make({here.memory, here.block}, {there.memory, there.block}, state->options.chunk));
    return order;
}

Result<Message> Transfer::post(MessageOrder order, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(State* const state, state_.get());
    PCCL_TRY(Blocks(order.block).check_within(order.memory->memory().bytes));
    const Kind kind = order.direction == Direction::kSend ? Kind::kSend : Kind::kReceive;
    PCCL_TRY(await_room(*state, kind, deadline));
    PCCL_ASSIGN_OR_RETURN(auto connection, state->core->connection_for(state->peer, order));
    PCCL_TRY(order.memory->begin_use());
    const auto memory = order.memory;
    const auto matcher = state->core->matcher_for(connection->peer().id);
    const auto posting = std::make_shared<Posting>(std::move(order), std::move(connection));
    if (const Status posted = matcher->post(posting); !posted.is_ok()) {
        memory->end_use();
        return posted;
    }
    Message message(posting, matcher);
    state->keep(kind, message);
    return message;
}

Result<Work> Transfer::post(Order order, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(State* const state, state_.get());
    const Kind kind = order.op == transport::RmaOp::kRead ? Kind::kRead : Kind::kWrite;
    PCCL_TRY(await_room(*state, kind, deadline));
    PCCL_ASSIGN_OR_RETURN(auto task, state->core->begin(std::move(order)));
    Work work(std::move(task));
    state->keep(kind, work);
    return work;
}

Status Transfer::await_room(State& state, Kind kind, Deadline deadline) {
    std::vector<Posted> alike;
    const auto has_room = [&] {
        alike = state.under_way(kind);
        return alike.size() < state.options.window;
    };
    if (carry_until(*state.core, deadline, has_room)) return Status::ok();
    return Status::timeout(concat(
        "session \"", state.peer, "\" takes its time: ", alike.size(), " ", Posted::plural(kind),
        " have not ended, as many as the window has, the first ", alike.front().to_string()));
}

const std::string& Transfer::peer() const { return state_.constants().peer; }

bool Transfer::is_complete() const {
    return state_.use(true, [](State& state) { return state.under_way().empty(); });
}

Status Transfer::await_end(Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(State* const state, state_.get());
    for (const Posted& posted : state->under_way()) {
        const Status ended = posted.wait(deadline);
        if (!posted.is_complete()) return ended;
    }
    return Status::ok();
}

Status Transfer::take_error() {
    PCCL_ASSIGN_OR_RETURN(State* const state, state_.get());
    static_cast<void>(state->under_way());
    const std::lock_guard lock(state->mutex);
    return std::exchange(state->failure, Status::ok());
}

Status Transfer::wait(Deadline deadline) {
    PCCL_TRY(await_end(deadline));
    return take_error();
}

void Transfer::release() {
    state_.use([](State& state) {
        for (const Posted& posted : state.under_way()) posted.release();
    });
}

}  // namespace pccl::p2p
