// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/loopback/control_plane.h"

#include <chrono>
#include <utility>

namespace pccl::transport::loopback {
namespace {

constexpr Duration kBetweenLooks = std::chrono::milliseconds(1);

}  // namespace

LoopbackControlPlane::LoopbackControlPlane(std::shared_ptr<ProcessTable> processes,
                                           std::shared_ptr<Process> process)
    : processes_(std::move(processes)),
      process_(std::move(process)),
      address_(processes_->address_of(*process_)) {}

Result<std::string> LoopbackControlPlane::call(const ControlAddress& peer,
                                               const Introduction& introduction,
                                               const Secret& secret, Deadline deadline) {
    PCCL_TRY(process_->live());
    PCCL_ASSIGN_OR_RETURN(const auto callee, processes_->find(peer));
    const auto call = std::make_shared<LoopbackCall>();
    call->introduction = introduction;
    call->secret = secret;
    call->where = processes_->place_of(*callee);
    call->caller = process_;
    callee->ring(call);
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const bool accepted, call->is_accepted());
        if (accepted) return call->answer;
        if (deadline.passed()) return call->timeout_error();
        system_clock().sleep_for(kBetweenLooks);
    }
}

Result<std::string> LoopbackControlPlane::query(const ControlAddress& peer,
                                                const LinkRequest& request, const Secret& secret,
                                                Deadline deadline) {
    return call(peer, {.request = request, .service = Service::kQuery}, secret, deadline);
}

Status LoopbackControlPlane::notify(const ControlAddress& peer, const LinkRequest& request,
                                    const Secret& secret, const Status& reason, Deadline deadline) {
    return call(peer, notice_for(request, reason), secret, deadline).status();
}

Status LoopbackControlPlane::probe(const ControlAddress& peer, Deadline) {
    const auto callee = processes_->find(peer);
    if (!callee.is_ok() || !(*callee)->is_dead()) return Status::ok();
    return Status::peer_lost(kNoRank, "nobody is there");
}

Result<std::string> LoopbackControlPlane::find_address(const ControlAddress&,
                                                       const std::vector<std::string>& addresses,
                                                       const LinkRequest&, const Secret&,
                                                       Deadline) {
    if (!addresses.empty()) return addresses.front();
    return Status::unavailable("it listens at no address that this process can use");
}

}  // namespace pccl::transport::loopback
