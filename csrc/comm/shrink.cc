// A smaller group out of one that has lost ranks, without a store: the store may have been lost
// too.
//
// What the survivors know is enough. All derive the same identity from that of the old group and
// the list of those who stay, and have one another's endpoints. Each then waits until every other
// answers for the new group, so that nobody is connected to before it is there.
#include <algorithm>
#include <cstring>

#include "csrc/base/text.h"
#include "csrc/comm/communicator.h"
#include "csrc/comm/group.h"
#include "csrc/comm/job_exchange.h"
#include "csrc/comm/runtime.h"
#include "csrc/sys/crypto/hmac.h"

namespace pccl::comm {
namespace {

constexpr Duration kPatience = std::chrono::milliseconds(500);
constexpr std::chrono::milliseconds kLongestMeeting = std::chrono::minutes(1);
constexpr Duration kPause = std::chrono::milliseconds(5);

/// One-way: members of the new group learn nothing that they do not know of the old one.
GroupIdentity derive(const GroupIdentity& old, std::span<const Rank> survivors) {
    const auto derived = [&](std::string_view label) {
        std::vector<std::uint8_t> message(label.begin(), label.end());
        message.insert(message.end(), old.group.begin(), old.group.end());
        for (const Rank rank : survivors)
            for (int shift = 0; shift < 32; shift += 8)
                message.push_back(static_cast<std::uint8_t>(static_cast<unsigned>(rank) >> shift));
        return sys::hmac_sha256(old.secret, message);
    };
    GroupIdentity identity;
    const sys::Digest group = derived("pccl-shrink-group");
    const sys::Digest secret = derived("pccl-shrink-secret");
    std::memcpy(identity.group.data(), group.data(), identity.group.size());
    std::memcpy(identity.secret.data(), secret.data(), identity.secret.size());
    return identity;
}

Result<std::vector<Rank>> survivors_of(const Group& group, std::span<const Rank> excluded) {
    for (const Rank rank : excluded)
        if (rank < 0 || rank >= group.size() || rank == group.rank())
            return Status::invalid_argument(concat("rank ", rank, " cannot be left out by rank ",
                                                   group.rank(), " of group ", group.name(), " of ",
                                                   group.size()));
    std::vector<Rank> survivors;
    for (Rank rank = 0; rank < group.size(); ++rank)
        if (std::ranges::find(excluded, rank) == excluded.end()) survivors.push_back(rank);
    return survivors;
}

Result<Roster> roster_of(const Group& group, const std::vector<Rank>& survivors) {
    Roster roster;
    for (const Rank rank : survivors) {
        Endpoint endpoint = group.endpoint(rank);
        endpoint.rank = static_cast<Rank>(roster.endpoints.size());
        roster.endpoints.push_back(std::move(endpoint));
    }
    PCCL_ASSIGN_OR_RETURN(roster.job, job_of_survivors(group.layout().job(), survivors));
    return roster;
}

/// Returns when all answer. A rank that does not know the group yet looks like one that has left:
/// only time tells them apart.
Status await_all(const Group& group, const Roster& roster, Deadline deadline) {
    for (const Endpoint& endpoint : roster.endpoints) {
        if (endpoint.rank == group.rank()) continue;
        for (;;) {
            const auto answer = group.ask(endpoint, Deadline::after(kPatience));
            if (answer.is_ok()) break;
            if (deadline.passed())
                return Status::timeout(concat("timed out: rank ", endpoint.rank,
                                              " does not shrink the group in the same way: ",
                                              answer.status().message()),
                                       endpoint.rank);
            system_clock().sleep_for(std::min<Duration>(kPause, deadline.remaining()));
        }
    }
    return Status::ok();
}

}  // namespace

Result<std::shared_ptr<Communicator>> Communicator::shrink(std::span<const Rank> excluded,
                                                           const ShrinkOptions& wanted) const {
    PCCL_TRY(check_process());
    PCCL_ASSIGN_OR_RETURN(const std::vector<Rank> survivors, survivors_of(*group_, excluded));
    PCCL_ASSIGN_OR_RETURN(const Roster roster, roster_of(*group_, survivors));
    PCCL_ASSIGN_OR_RETURN(auto layout, Layout::make(roster));
    const GroupIdentity identity = derive(group_->identity(), survivors);
    CommunicatorOptions options = options_;
    options.runtime = runtime_;
    options.size = static_cast<int>(survivors.size());
    options.rank = static_cast<Rank>(std::ranges::find(survivors, rank()) - survivors.begin());
    options.name = wanted.name.empty() ? concat(name(), ":shrunk") : wanted.name;
    options.timeout = wanted.timeout.value_or(timeout());
    if (!options.global_ranks.empty()) {
        std::vector<std::uint64_t> global;
        global.reserve(survivors.size());
        for (const Rank rank : survivors)
            global.push_back(options.global_ranks[static_cast<std::size_t>(rank)]);
        options.global_ranks = std::move(global);
    }
    const std::shared_ptr<Group> group(new Group(*runtime_, identity, options), LeaveToParent());
    runtime_->enroll(identity.group, identity.secret, group);
    std::shared_ptr<Communicator> comm(new Communicator(options, group));
    const Deadline deadline = Deadline::after(std::min(options.timeout, kLongestMeeting));
    PCCL_TRY(await_all(*group, roster, deadline));
    PCCL_TRY(group->register_remote_infos(roster, std::move(layout), deadline));
    return comm;
}

}  // namespace pccl::comm
