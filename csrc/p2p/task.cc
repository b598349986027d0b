#include "csrc/p2p/task.h"

#include <utility>

#include "csrc/transport/rma/gpu_stream.h"

namespace pccl::p2p {
namespace {

std::uint64_t bytes_of(const Order& order) {
    if (order.indices.empty()) return order.plan->bytes();
    std::uint64_t bytes = 0;
    for (const std::uint32_t index : order.indices) bytes += order.plan->bytes_of(index);
    return bytes;
}

}  // namespace

Task::Task(Order order, std::shared_ptr<Connection> connection, std::uint32_t pair)
    : order_(std::move(order)),
      connection_(std::move(connection)),
      bytes_(bytes_of(order_)),
      begun_(system_clock().now()),
      pair_(pair),
      may_begin_(order_.after == nullptr) {}

std::uint64_t Task::blocks() const {
    return order_.indices.empty() ? order_.plan->size() : order_.indices.size();
}

Duration Task::taken() const { return (is_complete() ? ended_ : system_clock().now()) - begun_; }

bool Task::may_begin() {
    if (may_begin_) return true;
    const auto come = order_.after->has_come();
    if (!come.is_ok()) fail(come.status());
    may_begin_ = !come.is_ok() || *come;
    return may_begin_;
}

void Task::posted(std::size_t pieces, const Plan::Cursor& after) {
    cursor_ = after;
    ++flying_;
    pieces_.fetch_add(pieces, std::memory_order_relaxed);
}

void Task::landed(const Status& status) {
    --flying_;
    if (!status.is_ok()) fail(status);
}

runtime::SessionTransfer Task::entry() const {
    return {.pair = pair_,
            .writes = order_.op == transport::RmaOp::kWrite,
            .bytes = bytes_,
            .posted = begun_};
}

void Task::record() {
    if (!is_complete()) number_ = runtime::session_recorder().add(entry());
}

void Task::refuse(const Status& status) {
    order_.plan->local().end_use();
    refused_ = true;
    status_ = status;
    ended_ = begun_;
    done_.store(true, std::memory_order_release);
}

void Task::finish(const runtime::SessionPath& path) {
    order_.plan->local().end_use();
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
