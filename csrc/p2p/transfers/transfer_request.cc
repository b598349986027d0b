// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/transfers/transfer_request.h"

#include <utility>

#include "csrc/p2p/transfers/registered_memory.h"
#include "csrc/transport/rma/gpu_stream.h"

namespace pccl::p2p {
namespace {

std::uint64_t bytes_of(const TransferArgs& args) {
    if (args.indices.empty()) return args.plan->bytes();
    std::uint64_t bytes = 0;
    for (const std::uint32_t index : args.indices) bytes += args.plan->bytes_of(index);
    return bytes;
}

}  // namespace

TransferRequest::TransferRequest(TransferArgs args, std::shared_ptr<Connection> connection,
                                 std::uint32_t pair)
    : args_(std::move(args)),
      connection_(std::move(connection)),
      bytes_(bytes_of(args_)),
      begun_(system_clock().now()),
      pair_(pair),
      may_begin_(args_.after == nullptr) {}

std::uint64_t TransferRequest::blocks() const {
    return args_.indices.empty() ? args_.plan->size() : args_.indices.size();
}

Duration TransferRequest::taken() const {
    return (is_complete() ? ended_ : system_clock().now()) - begun_;
}

bool TransferRequest::may_begin() {
    if (may_begin_) return true;
    const auto come = args_.after->has_come();
    if (!come.is_ok()) record_failure(come.status());
    may_begin_ = !come.is_ok() || *come;
    return may_begin_;
}

void TransferRequest::posted(std::size_t pieces, const PlanCursor& after) {
    cursor_ = after;
    ++in_flight_;
    pieces_.fetch_add(pieces, std::memory_order_relaxed);
}

void TransferRequest::post_ended(const Status& status) {
    --in_flight_;
    if (!status.is_ok()) record_failure(status);
}

runtime::SessionTransfer TransferRequest::entry() const {
    return {.pair = pair_,
            .writes = args_.op == transport::RmaOp::kWrite,
            .bytes = bytes_,
            .posted = begun_};
}

void TransferRequest::record() {
    if (!is_complete()) number_ = runtime::session_recorder().add(entry());
}

void TransferRequest::refuse(const Status& status) {
    registered(args_.plan->local()).end_use();
    refused_ = true;
    status_ = status;
    ended_ = begun_;
    done_.store(true, std::memory_order_release);
}

void TransferRequest::finish(const runtime::SessionPath& path) {
    registered(args_.plan->local()).end_use();
    status_ = failure_;
    ended_ = system_clock().now();
    runtime::SessionRecorder& recorder = runtime::session_recorder();
    if (number_ != 0) {
        recorder.ended(number_, status_, path, ended_);
    } else {
        runtime::SessionTransfer whole = entry();
        whole.ended = ended_;
        whole.outcome = status_.code();
        whole.path = path;
        recorder.add(whole);
    }
    done_.store(true, std::memory_order_release);
}

}  // namespace pccl::p2p
