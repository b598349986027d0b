#include "csrc/comm/connection_context.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/log.h"
#include "csrc/base/text.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/comm/selection/cost_model.h"

namespace pccl::comm {
namespace {

constexpr Duration kBetweenQuestions = std::chrono::milliseconds(200);
constexpr Duration kBeforeAskingAgain = std::chrono::milliseconds(20);
constexpr Duration kPatience = std::chrono::milliseconds(500);
// Less than peers allow for a handshake (handshake_server.h).
constexpr Duration kLeft = std::chrono::milliseconds(400);

}  // namespace

ConnectionContext::ConnectionContext(runtime::Runtime& runtime,
                                     const bootstrap::GroupIdentity& identity, Member self)
    : runtime_(runtime),
      identity_(identity),
      self_(std::move(self)),
      first_senders_(static_cast<std::size_t>(self_.size), nullptr),
      first_receivers_(static_cast<std::size_t>(self_.size)) {}

Status ConnectionContext::register_remote_infos(bootstrap::Roster roster, Deadline deadline) {
    roster_ = std::move(roster);
    if (!has_board()) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(auto region,
                          self_.rank == 0 ? share_region(deadline) : await_region(deadline));
    board_ = std::make_unique<Board>(std::move(region), self_.rank, self_.size);
    PCCL_TRY(open_board(deadline));
    reaching_.store(kNoRank);
    return Status::ok();
}

bool ConnectionContext::has_board() const {
    return self_.size > 1 && self_.size <= kMostBoardRanks && is_on_one_host(roster_);
}

Result<std::unique_ptr<transport::Region>> ConnectionContext::share_region(Deadline deadline) {
    std::vector<std::string> addresses;
    addresses.reserve(roster_.endpoints.size());
    for (const bootstrap::Endpoint& endpoint : roster_.endpoints)
        addresses.push_back(endpoint.addresses.at(transport::TransportKind::kShm));
    transport::Transport* const shm = runtime_.find(transport::TransportKind::kShm);
    PCCL_ASSERT(shm != nullptr);
    return shm->share({.group = identity_.group,
                       .addresses = addresses,
                       .waits_for = [this](Rank rank) { reaching_.store(rank); }},
                      identity_.secret, deadline);
}

Result<std::unique_ptr<transport::Region>> ConnectionContext::await_region(Deadline deadline) {
    transport::Backoff backoff(*runtime_.waiter());
    Deadline look = Deadline::after(kBetweenQuestions);
    const TimePoint since = system_clock().now();
    reaching_.store(0);
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            if (region_ != nullptr) return std::move(region_);
        }
        if (shortage_.is_set()) return shortage_.get();
        if (deadline.passed())
            return Status::timeout("timed out waiting for rank 0 (to share its memory)", 0);
        say_late(since, 0, "share its memory");
        if (look.passed()) {
            const auto answer = ask(0, Deadline::after(kPatience));
            if (answer.status().code() == StatusCode::kPeerLost) return answer.status();
            look = Deadline::after(kBetweenQuestions);
        }
        backoff.pause();
    }
}

void ConnectionContext::say_late(TimePoint since, Rank peer, std::string_view act) {
    if (const Duration waited = system_clock().now() - since; notice_.is_due(waited))
        log(LogLevel::kWarning, "group ", self_.group_name, ": rank ", self_.rank, " has waited ",
            in_seconds(waited), " for rank ", peer, " to ", act);
}

Status ConnectionContext::open_board(Deadline deadline) {
    transport::Backoff backoff(*runtime_.waiter());
    const TimePoint since = system_clock().now();
    for (;;) {
        const std::uint64_t waits = board_->waits();
        PCCL_ASSIGN_OR_RETURN(const bool open, board_->open());
        if (open) break;
        if (board_->waits() != waits) backoff.reset();
        // Nobody is awaited on a board that rank 0 has not completed.
        const Rank late = board_->awaited() == kNoRank ? 0 : board_->awaited();
        reaching_.store(late);
        if (deadline.passed())
            return Status::timeout(
                concat("timed out waiting for rank ", late, " (to open the group's shared memory)"),
                late);
        if (backoff.slept()) PCCL_TRY(board_->look_at_meeting());
        say_late(since, late, "open the group's shared memory");
        backoff.pause();
    }
    if (board_->is_crowded()) runtime_.waiter()->set_crowded(true);
    if (board_->leaves_barriers_to_sleepers()) runtime_.waiter()->take_barriers();
    log(LogLevel::kInfo, "group ", self_.group_name, ": rank ", self_.rank, " shares memory with ",
        self_.size - 1, " ranks of this host",
        board_->reads_directly() ? ", which read each other's memory directly" : "");
    return Status::ok();
}

void ConnectionContext::accepted(const transport::LinkRequest& request,
                                 std::unique_ptr<transport::Region> region) {
    if (request.source != 0 || request.destination != self_.rank ||
        request.group_size != self_.size)
        return runtime_.refused(
            to_string(transport::TransportKind::kShm),
            Status::invalid_argument(concat("a region from rank ", request.source, " to rank ",
                                            request.destination, " does not belong to group ",
                                            self_.group_name)));
    const std::lock_guard lock(mutex_);
    region_ = std::move(region);
}

Result<transport::SendLink*> ConnectionContext::send_link(Rank peer, ChannelId channel) {
    const auto index = static_cast<std::size_t>(peer);
    if (channel == 0 && first_senders_[index] != nullptr) return first_senders_[index];
    const Key key{peer, channel};
    auto found = senders_.find(key);
    if (found == senders_.end()) {
        PCCL_ASSIGN_OR_RETURN(auto link, open(key));
        if (link == nullptr) return nullptr;
        found = senders_.emplace(key, std::move(link)).first;
        if (channel == 0) first_senders_[index] = found->second.get();
    }
    return found->second.get();
}

transport::LinkRequest ConnectionContext::request_to(Rank peer, ChannelId channel) const {
    return {.group = identity_.group,
            .source = self_.rank,
            .destination = peer,
            .channel = channel,
            .group_size = self_.size};
}

Result<Situation> ConnectionContext::ask(const bootstrap::Endpoint& peer, Deadline deadline) const {
    PCCL_ASSIGN_OR_RETURN(const runtime::Runtime::Way way, runtime_.way_to(peer, self_.allowed));
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const std::string answer,
                              way.transport->inquire(way.address, request_to(peer.rank, 0),
                                                     identity_.secret, deadline));
        PCCL_ASSIGN_OR_RETURN(Situation situation, Situation::parse(answer));
        if (situation.is_whole || deadline.remaining() <= kBeforeAskingAgain) return situation;
        system_clock().sleep_for(kBeforeAskingAgain);
    }
}

Status ConnectionContext::tell(Rank peer, const Status& reason, Deadline deadline) const {
    PCCL_ASSIGN_OR_RETURN(const runtime::Runtime::Way way,
                          runtime_.way_to(endpoint(peer), self_.allowed));
    return way.transport->tell(way.address, request_to(peer, 0), identity_.secret, reason,
                               deadline);
}

std::vector<Rank> ConnectionContext::out_of_reach() {
    std::vector<Rank> ranks;
    if (board_ != nullptr || !knows_peers()) return ranks;
    const std::lock_guard lock(mutex_);
    // Nearest first: the neighbours of one rank are not all of them those of another.
    for (Rank distance = 1; distance < self_.size; ++distance) {
        const Rank peer = (self_.rank + distance) % self_.size;
        if (!senders_.contains({peer, 0}) && !receivers_.contains({peer, 0})) ranks.push_back(peer);
    }
    return ranks;
}

Status ConnectionContext::look() {
    if (board_ != nullptr) PCCL_TRY(board_->look_at_all());
    for (const auto& [key, link] : senders_) PCCL_TRY(link->look());
    const std::lock_guard lock(mutex_);
    for (const auto& [key, link] : receivers_) PCCL_TRY(link->look());
    return Status::ok();
}

Status ConnectionContext::look(Rank peer) {
    if (board_ != nullptr) PCCL_TRY(board_->look(peer));
    for (const auto& [key, link] : senders_)
        if (key.first == peer) PCCL_TRY(link->look());
    const std::lock_guard lock(mutex_);
    for (const auto& [key, link] : receivers_)
        if (key.first == peer) PCCL_TRY(link->look());
    return Status::ok();
}

Status ConnectionContext::look_for_failure() {
    const auto failure = [](Rank leaver, const Status& gone) {
        const bool is_told = gone.code() != StatusCode::kPeerLost || gone.peer() != leaver;
        return is_told ? gone : Status::ok();
    };
    if (board_ != nullptr) PCCL_TRY(board_->failure());
    for (const auto& [key, link] : senders_) PCCL_TRY(failure(key.first, link->look()));
    const std::lock_guard lock(mutex_);
    for (const auto& [key, link] : receivers_) PCCL_TRY(failure(key.first, link->look()));
    return Status::ok();
}

Status ConnectionContext::compare_latest(const abi::CollectiveHeader& ours) {
    if (board_ != nullptr) PCCL_TRY(board_->compare_latest(ours));
    const std::lock_guard lock(mutex_);
    for (const auto& [key, link] : receivers_) {
        const auto waiting = link->peek(transport::kCollectiveChannel);
        abi::CollectiveHeader theirs{};
        if (!waiting.is_ok() || waiting->size() < sizeof theirs) continue;
        std::memcpy(&theirs, waiting->data(), sizeof theirs);
        // A later one may just not have been called here.
        if (theirs.sequence != ours.sequence) continue;
        PCCL_TRY(compare(common_part(ours), common_part(theirs),
                         {.self = self_.rank, .peer = key.first}));
    }
    return Status::ok();
}

Result<ConnectionContext::Attempt> ConnectionContext::begin(const Key& key) const {
    const auto& [peer, channel] = key;
    PCCL_ASSIGN_OR_RETURN(runtime::Runtime::Way way,
                          runtime_.way_to(endpoint(peer), self_.allowed));
    PCCL_ASSIGN_OR_RETURN(
        auto dial, way.transport->dial(way.address, request_to(peer, channel), identity_.secret));
    return Attempt{.way = std::move(way),
                   .dial = std::move(dial),
                   .deadline = Deadline::after(process_config().connect_timeout),
                   .looked = system_clock().now()};
}

Result<std::unique_ptr<transport::SendLink>> ConnectionContext::open(const Key& key) {
    if (!attempts_.contains(key)) {
        auto attempt = begin(key);
        PCCL_TRY(attempt.status());
        attempts_.emplace(key, std::move(*attempt));
    }
    reaching_.store(key.first);
    auto link = go_on(key);
    if (link.is_ok() && *link == nullptr) return link;
    attempts_.erase(key);
    reaching_.store(attempts_.empty() ? kNoRank : attempts_.begin()->first.first);
    if (!link.is_ok())
        return link.status().with_context(
            concat("rank ", self_.rank, " cannot connect to rank ", key.first));
    return link;
}

Result<std::unique_ptr<transport::SendLink>> ConnectionContext::go_on(const Key& key) {
    Attempt& attempt = attempts_.at(key);
    const TimePoint now = system_clock().now();
    const bool was_left = now - std::exchange(attempt.looked, now) > kLeft;
    auto link = attempt.dial->advance();
    if (!link.is_ok() && was_left) {
        // The peer has given up on a connection that nobody here went on with: the next look
        // begins another.
        attempts_.erase(key);
        return std::unique_ptr<transport::SendLink>();
    }
    if (!link.is_ok()) return link;
    if (*link == nullptr && attempt.deadline.passed()) return attempt.dial->late();
    if (*link != nullptr)
        log(LogLevel::kInfo, "group ", self_.group_name, ": rank ", self_.rank, " sends to rank ",
            key.first, " over ", to_string(attempt.way.transport->kind()), attempt.way.reasons);
    return link;
}

transport::RecvLink* ConnectionContext::receive_link(Rank peer, ChannelId channel) {
    if (channel == 0)
        return first_receivers_[static_cast<std::size_t>(peer)].load(std::memory_order_acquire);
    const std::lock_guard lock(mutex_);
    const auto found = receivers_.find({peer, channel});
    return found == receivers_.end() ? nullptr : found->second.get();
}

void ConnectionContext::accepted(const transport::LinkRequest& request,
                                 std::unique_ptr<transport::RecvLink> link) {
    if (request.destination != self_.rank || request.source < 0 || request.source >= self_.size) {
        runtime_.refused(to_string(link->kind()),
                         Status::invalid_argument(
                             concat("a link from rank ", request.source, " to rank ",
                                    request.destination, " does not belong to rank ", self_.rank,
                                    " of ", self_.size, " in group ", self_.group_name)));
        return;
    }
    const std::lock_guard lock(mutex_);
    if (!closed_.is_ok()) return link->abort(closed_);
    auto& slot = receivers_[{request.source, request.channel}];
    if (slot != nullptr) retired_.push_back(std::move(slot));
    slot = std::move(link);
    if (request.channel == 0)
        first_receivers_[static_cast<std::size_t>(request.source)].store(slot.get(),
                                                                         std::memory_order_release);
}

void ConnectionContext::close(const Status& reason) {
    if (board_ != nullptr) board_->leave(reason);
    attempts_.clear();
    for (const auto& [key, link] : senders_) link->abort(reason);
    senders_.clear();
    std::fill(first_senders_.begin(), first_senders_.end(), nullptr);
    const std::lock_guard lock(mutex_);
    closed_ = reason;
    for (const auto& [key, link] : receivers_) link->abort(reason);
    for (auto& first : first_receivers_) first.store(nullptr);
    receivers_.clear();
    retired_.clear();
}

}  // namespace pccl::comm
