// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <pccl/transfer.h>
#include "csrc/base/fork_checked.h"
#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/connection.h"
#include "csrc/p2p/transfers/transfer_request.h"

namespace pccl::p2p {
namespace {

void progress_transfer_until(const TransferRequest& request, Deadline deadline) {
    if (request.is_complete()) return;
    ProgressGuard guard(*request.connection());
    guard.progress_until(
        deadline, [&] { return guard.progress(&request); }, [&] { return request.is_complete(); });
}

WorkStats stats_of(const TransferRequest& request) {
    WorkStats stats{.bytes = request.bytes(),
                    .blocks = request.blocks(),
                    .pieces = request.pieces(),
                    .taken = request.taken()};
    Connection& connection = *request.connection();
    if (!connection.is_whole()) return stats;
    const auto route = route_of(connection.route(), *request.args().plan);
    stats.path = concat(route.kind, ", ", route.how);
    stats.reasons = connection.route().reasons;
    LaneReport report = connection.lane_report();
    stats.lanes = report.lanes;
    stats.lane_reason = std::move(report.reason);
    return stats;
}

ForkChecked<TransferRequest> checked_work(const std::shared_ptr<TransferRequest>& request) {
    return {request->made_in(), *request, "work"};
}

}  // namespace

Work::Work(std::shared_ptr<TransferRequest> request) : request_(std::move(request)) {}

Status Work::check_usable() const { return checked_work(request_).check(); }

bool Work::is_complete() const {
    return checked_work(request_).use(
        true, [](const TransferRequest& request) { return request.is_complete(); });
}

bool Work::poll() const {
    return checked_work(request_).use(true, [](const TransferRequest& request) {
        if (request.is_complete()) return true;
        ProgressGuard guard(*request.connection());
        guard.progress(&request);
        return request.is_complete();
    });
}

Status Work::status() const {
    PCCL_ASSIGN_OR_RETURN(const TransferRequest* const request, checked_work(request_).get());
    return request->status();
}

Status Work::wait(Deadline deadline) const {
    PCCL_ASSIGN_OR_RETURN(const TransferRequest* const request, checked_work(request_).get());
    progress_transfer_until(*request, deadline);  // its end may complete the request
    if (request->is_complete()) return request->status();
    const ConnectionInfo& peer = request->connection()->peer();
    return Status::timeout(concat(peer.to_string(), ": ", to_string(), " has not ended in time"))
        .with_process(peer.process);
}

void Work::release() const {
    checked_work(request_).use([](TransferRequest& request) {
        request.give_up();
        request.connection()->waiter().wake();
    });
}

const SessionId& Work::peer() const { return request_->connection()->peer().id; }

std::string Work::to_string() const {
    const TransferRequest& request = *request_;
    const bool reads = request.args().op == transport::RmaOp::kRead;
    return concat(reads ? "a read" : "a write", " of ", request.bytes(), " bytes");
}

WorkStats Work::stats() const {
    return checked_work(request_).use(
        WorkStats(), [](const TransferRequest& request) { return stats_of(request); });
}

}  // namespace pccl::p2p
