#include "csrc/comm/device/device_meeting.h"

#include <chrono>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/sys/host.h"

namespace pccl::comm {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(1);

/// "0 " and what a rank has to say, or a code and who is in the way by what.
std::string vote_of(const Status& status, std::string_view word) {
    return concat(static_cast<int>(status.code()), " ", status.is_ok() ? word : status.message());
}

Status objection_in(std::string_view vote) {
    const int code = vote.empty() ? 0 : vote.front() - '0';
    if (code == 0) return Status::ok();
    const std::string what(vote.substr(vote.find(' ') + 1));
    const bool is_absent = code == static_cast<int>(StatusCode::kUnavailable);
    return is_absent ? Status::unavailable(what) : Status::unsupported(what);
}

Status said_by(Rank rank, const Status& status) {
    return status.with_message(concat("rank ", rank, ": ", status.message()));
}

Deadline deadline_of(const DeviceMeeting::Options& options) {
    const Deadline deadline = Deadline::after(options.timeout);
    return options.is_cancelled == nullptr ? deadline : deadline.unless(*options.is_cancelled);
}

}  // namespace

DeviceMeeting::DeviceMeeting(Options options)
    : options_(std::move(options)), deadline_(deadline_of(options_)) {}

bool DeviceMeeting::is_cancelled() const {
    return options_.is_cancelled != nullptr && options_.is_cancelled->load();
}

std::string DeviceMeeting::key(std::string_view subject, Rank rank) const {
    return concat("pccl/gpu/", subject, "/", rank);
}

Status DeviceMeeting::say(std::string_view subject, const std::string& what) const {
    return options_.store->set(key(subject, options_.rank), what);
}

template <typename Get>
auto DeviceMeeting::attentively(Get get) const -> decltype(get(Deadline::never())) {
    for (;;) {
        auto got = get(deadline_.within(kBetweenLooks));
        if (got.status().code() != StatusCode::kTimeout || deadline_.passed()) return got;
        PCCL_TRY(objection());
    }
}

Result<std::string> DeviceMeeting::hear(Rank peer, std::string_view subject) const {
    auto said =
        attentively([&](Deadline soon) { return options_.store->get(key(subject, peer), soon); });
    if (said.status().code() != StatusCode::kTimeout) return said;
    return Status::timeout(concat("rank ", peer, " has not come with its GPU"), peer);
}

Result<GroupIdentity> DeviceMeeting::agree_on_identity() const {
    return attentively([&](Deadline soon) {
        return comm::agree_on_identity(*options_.store, options_.rank,
                                       {.size = options_.size, .deadline = soon});
    });
}

Status DeviceMeeting::objection() const {
    for (Rank rank = 0; rank < options_.size; ++rank) {
        const auto said = options_.store->get(key("met", rank), Deadline::after(Duration::zero()));
        if (said.is_ok()) PCCL_TRY(objection_in(*said));
    }
    return Status::ok();
}

Result<std::vector<std::string>> DeviceMeeting::votes(std::string_view subject) const {
    std::vector<std::string> votes;
    for (Rank rank = 0; rank < options_.size; ++rank) {
        PCCL_ASSIGN_OR_RETURN(std::string said, hear(rank, subject));
        PCCL_TRY(objection_in(said));
        votes.push_back(std::move(said));
    }
    return votes;
}

Status DeviceMeeting::agree_on_host(const Status& here) {
    PCCL_ASSIGN_OR_RETURN(const std::string host, sys::host_identity());
    const std::string vote = vote_of(said_by(options_.rank, here), host);
    if (options_.size == 1) return objection_in(vote);
    PCCL_TRY(say("host", vote));
    PCCL_ASSIGN_OR_RETURN(const auto hosts, votes("host"));
    for (std::size_t rank = 1; rank < hosts.size(); ++rank)
        if (hosts[rank] != hosts.front())
            return Status::unsupported(concat("rank ", rank, " is on another host than rank 0"));
    return Status::ok();
}

Status DeviceMeeting::vote_on(const Status& met) const {
    const std::string vote = vote_of(cause_of(met), "");
    return options_.size == 1 ? objection_in(vote) : say("met", vote);
}

Status DeviceMeeting::cause_of(const Status& met) const {
    Status own = said_by(options_.rank, met);
    if (met.is_ok()) return own;
    PCCL_TRY(objection());
    if (met.code() != StatusCode::kPeerLost || met.peer() == kNoRank) return own;
    const auto said = options_.store->get(key("met", met.peer()), Deadline::after(kBetweenLooks));
    Status others = said.is_ok() ? objection_in(*said) : Status::ok();
    return others.is_ok() ? own : others;
}

Status DeviceMeeting::call_off() const {
    const Status why =
        said_by(options_.rank, Status::unavailable("called off the meeting of GPUs"));
    if (options_.size > 1) PCCL_TRY(say("met", vote_of(why, "")));
    return Status::aborted("the meeting of GPUs was called off here");
}

}  // namespace pccl::comm
