#include "csrc/comm/device/device_group.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/comm/flight_dump.h"
#include "csrc/comm/roster.h"
#include "csrc/sys/host.h"

namespace pccl::comm {
namespace {

using sys::cuda::DeviceAddress;

std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

std::string address_key(Rank rank) { return concat("pccl/gpu/", rank); }

Status status_of(const abi::DeviceFault& fault, std::string_view operation) {
    const std::string what =
        concat("rank ", fault.rank, " waited for rank ", fault.peer, " in ", operation, ", block ",
               fault.block, " (expected ", fault.expected, ", seen ", fault.seen, ")");
    if (fault.phase == abi::DevicePhase::kLength)
        return Status::mismatch(
            fault.peer, concat("rank ", fault.rank, " sends ", fault.expected, " bytes, but rank ",
                               fault.peer, " expects ", fault.seen, ", in ", operation));
    if (fault.is_abort != 0) return Status::aborted(what);
    return Status::timeout(what, fault.peer);
}

/// The driver, with this rank's device current on this thread.
Result<sys::cuda::Driver*> driver_of(const DeviceGroupOptions& options) {
    sys::cuda::Driver* driver = options.driver;
    if (driver == nullptr) {
        PCCL_ASSIGN_OR_RETURN(driver, sys::cuda::process_driver());
    }
    PCCL_TRY(driver->use(options.device));
    if (!options.has_peer_access) return Status::unsupported("PCCL_GPU_PEER_ACCESS=0");
    return driver;
}

/// Votes of ranks: "0 " and what it has to say, or a code and who is in the way by what.
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

/// A question that every rank answers; the first that objects decides for all.
class Poll {
   public:
    Poll(const DeviceGroupOptions& options, std::string_view subject)
        : options_(options), subject_(subject) {}

    [[nodiscard]] Status answer(const std::string& vote) const {
        return options_.store->set(key(options_.rank), vote);
    }
    [[nodiscard]] Result<std::string> answer_of(Rank rank, Deadline deadline) const {
        return options_.store->get(key(rank), deadline);
    }
    [[nodiscard]] Result<std::vector<std::string>> answers(Deadline deadline) const {
        std::vector<std::string> votes;
        for (Rank rank = 0; rank < options_.size; ++rank) {
            auto said = answer_of(rank, deadline);
            if (said.status().code() == StatusCode::kTimeout)
                return Status::timeout(concat("rank ", rank, " has not come with its GPU"), rank);
            PCCL_TRY(said.status());
            PCCL_TRY(objection_in(*said));
            votes.push_back(std::move(*said));
        }
        return votes;
    }

   private:
    [[nodiscard]] std::string key(Rank rank) const {
        return concat("pccl/gpu/", subject_, "/", rank);
    }

    const DeviceGroupOptions& options_;
    const std::string_view subject_;
};

/// What kept `rank` from meeting the others: where that is a peer that left, what that one says.
Status cause_of(const Status& met, Rank rank, const Poll& poll) {
    Status own = said_by(rank, met);
    if (met.code() != StatusCode::kPeerLost || met.peer() == kNoRank) return own;
    const auto said = poll.answer_of(met.peer(), Deadline::after(std::chrono::seconds(1)));
    Status others = said.is_ok() ? objection_in(*said) : Status::ok();
    return others.is_ok() ? own : others;
}

/// All ranks have met. One that has not calls leave() once it has said why.
template <typename Leave>
Status agree(const DeviceGroupOptions& options, const Status& met, Deadline deadline, Leave leave) {
    if (met.code() == StatusCode::kTimeout) return met;
    const Poll poll(options, "met");
    const std::string vote = vote_of(cause_of(met, options.rank, poll), "");
    if (options.size == 1) return objection_in(vote);
    PCCL_TRY(poll.answer(vote));
    if (!met.is_ok()) leave();
    return poll.answers(deadline).status();
}

/// All ranks have a GPU, on one host.
Status agree_on_host(const DeviceGroupOptions& options, const Status& here, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const std::string host, sys::host_identity());
    const std::string vote = vote_of(said_by(options.rank, here), host);
    if (options.size == 1) return objection_in(vote);
    const Poll poll(options, "host");
    PCCL_TRY(poll.answer(vote));
    PCCL_ASSIGN_OR_RETURN(const auto hosts, poll.answers(deadline));
    for (Rank rank = 1; rank < options.size; ++rank)
        if (hosts[index(rank)] != hosts.front())
            return Status::unsupported(concat("rank ", rank, " is on another host than rank 0"));
    return Status::ok();
}

}  // namespace

Result<std::unique_ptr<DeviceGroup>> DeviceGroup::create(const DeviceGroupOptions& options) {
    if (options.size < 1 || options.size > abi::kMostDevices)
        return Status::unsupported(concat("a group of ", options.size, " GPUs on one host; 1 to ",
                                          abi::kMostDevices, " work"));
    if (options.rank < 0 || options.rank >= options.size)
        return Status::invalid_argument(
            concat("rank ", options.rank, " is not in a group of ", options.size));
    const Deadline deadline = Deadline::after(options.timeout);
    const auto driver = driver_of(options);
    PCCL_TRY(agree_on_host(options, driver.status(), deadline));
    std::unique_ptr<DeviceGroup> group(new DeviceGroup(options, **driver));
    // Peers that wait for this rank's memory see its sockets close.
    const auto leave = [&group] { group.reset(); };
    PCCL_TRY(agree(options, group->meet(deadline), deadline, leave));
    return group;
}

DeviceGroup::DeviceGroup(const DeviceGroupOptions& options, sys::cuda::Driver& driver)
    : options_(options),
      driver_(driver),
      timeout_(options.timeout),
      collectives_(driver, options.device),
      sends_(driver, options.device),
      receives_(driver, options.device) {}

DeviceGroup::~DeviceGroup() = default;

Status DeviceGroup::meet(Deadline deadline) {
    PCCL_TRY(connect(deadline));
    PCCL_TRY(agree_on_preferences(deadline));
    if (options_.driver == nullptr) PCCL_TRY(kernels::load_kernels(options_.size));
    return share_memory(deadline);
}

Status DeviceGroup::share_memory(Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(
        heap_, transport::nvlink::SymmetricHeap::create(
                   {.driver = driver_, .device = options_.device, .bytes = sizeof(abi::Heap)},
                   *sockets_, deadline));
    PCCL_TRY(allocate_control());
    PCCL_ASSIGN_OR_RETURN(window_, LaunchWindow::of(driver_, options_.device));
    PCCL_ASSIGN_OR_RETURN(
        registrations_,
        transport::nvlink::RegistrationCache::create(
            {.driver = driver_, .device = options_.device, .sockets = *sockets_, .on_lost = [this] {
                 stop_kernels();
             }}));
    puller_ = std::make_unique<Puller>(
        Puller::Options{.driver = driver_,
                        .device = options_.device,
                        .hints = control_->hints,
                        .is_mapped = [this](DeviceAddress address, std::size_t bytes) {
                            return registrations_->has_mapped(address, bytes);
                        }});
    programs_ = std::make_unique<DevicePrograms>(DevicePrograms::Options{.driver = driver_,
                                                                         .device = options_.device,
                                                                         .rank = options_.rank,
                                                                         .size = options_.size});
    for (Rank rank = 0; rank < options_.size; ++rank)
        team_.heaps[index(rank)] = std::bit_cast<abi::Heap*>(heap_->bases()[index(rank)]);
    team_.control = control_.get();
    team_.rank = options_.rank;
    team_.size = options_.size;
    return Status::ok();
}

Status DeviceGroup::connect(Deadline deadline) {
    transport::nvlink::PeerSocketsOptions own{.rank = options_.rank, .size = options_.size};
    if (options_.size > 1) {
        const Meeting meeting{.size = options_.size, .deadline = deadline};
        PCCL_ASSIGN_OR_RETURN(const GroupIdentity identity,
                              agree_on_identity(*options_.store, options_.rank, meeting));
        own.group = identity.group;
        own.secret = identity.secret;
    }
    PCCL_ASSIGN_OR_RETURN(sockets_, transport::nvlink::PeerSockets::listen(own));
    if (options_.size == 1) return Status::ok();
    PCCL_TRY(options_.store->set(address_key(options_.rank), sockets_->address()));
    std::vector<std::string> addresses(index(options_.size));
    for (Rank peer = 0; peer < options_.rank; ++peer) {
        PCCL_ASSIGN_OR_RETURN(addresses[index(peer)],
                              options_.store->get(address_key(peer), deadline));
    }
    return sockets_->connect(addresses, deadline);
}

/// "1all_reduce=ring": whether engines are preferred, and the list of schedules.
Status DeviceGroup::agree_on_preferences(Deadline deadline) {
    constexpr std::string_view kKey = "pccl/gpu/preferences";
    std::string said = concat(options_.prefers_engines ? "1" : "0", options_.algorithms);
    if (options_.size > 1 && options_.rank == 0)
        PCCL_TRY(options_.store->set(std::string(kKey), said));
    if (options_.size > 1 && options_.rank != 0) {
        PCCL_ASSIGN_OR_RETURN(said, options_.store->get(std::string(kKey), deadline));
    }
    prefers_engines_ = said.starts_with('1');
    algorithms_ = said.substr(std::min<std::size_t>(1, said.size()));
    return Status::ok();
}

Status DeviceGroup::allocate_control() {
    PCCL_ASSIGN_OR_RETURN(void* const memory, driver_.allocate_host(sizeof(abi::DeviceControl)));
    control_ = {static_cast<abi::DeviceControl*>(memory),
                [&driver = driver_](void* made) { static_cast<void>(driver.free_host(made)); }};
    log_ = LaunchLog::open({.name = options_.name,
                            .rank = options_.rank,
                            .size = options_.size,
                            .global_ranks = options_.global_ranks},
                           control_);
    return Status::ok();
}

Status DeviceGroup::health() const {
    Status why = why_over();
    if (why.is_ok()) return why;
    why = explained(why);
    record_end(why);
    return why;
}

Status DeviceGroup::why_over() const {
    PCCL_TRY(registrations_->health());
    if (!has_given_up()) return Status::ok();
    end(given_up());
    return registrations_->health();
}

Status DeviceGroup::given_up() const {
    const abi::DeviceFault& fault = control_->fault;
    return status_of(fault, log_->operation(fault.ticket));
}

void DeviceGroup::record_end(const Status& why) const {
    if (why.code() == StatusCode::kAborted) return;
    std::call_once(is_recorded_, [&] {
        if (has_given_up()) log_->end(control_->fault.ticket, given_up());
        dump_flight_record(why.message());
    });
}

bool DeviceGroup::has_given_up() const {
    return std::atomic_ref(control_->fault.is_set).load(std::memory_order_acquire) != 0;
}

void DeviceGroup::abort() { end(Status::aborted("abort was called")); }

void DeviceGroup::end(const Status& why) const {
    registrations_->leave(why);
    stop_kernels();
}

void DeviceGroup::stop_kernels() const { std::atomic_ref(control_->abort).store(1); }

bool DeviceGroup::is_captured(kernels::Stream stream) const {
    const auto is_capturing = driver_.is_capturing(stream);
    // The default stream refuses to say while another is being captured.
    return !is_capturing.is_ok() || *is_capturing;
}

Status DeviceGroup::adopt_thread() const {
    PCCL_TRY(driver_.use(options_.device));
    return driver_.ignore_captures();
}

}  // namespace pccl::comm
