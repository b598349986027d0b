#include "csrc/p2p/work.h"

#include <utility>

#include "csrc/base/text.h"
#include "csrc/p2p/connection.h"
#include "csrc/p2p/task.h"

namespace pccl::p2p {
Work::Work(std::shared_ptr<Task> task) : task_(std::move(task)) {}

bool Work::is_complete() const { return task_->is_complete(); }

bool Work::poll() const {
    if (task_->is_complete()) return true;
    Attendance attendance(*task_->connection());
    attendance.carry(task_.get());
    return task_->is_complete();
}

Status Work::status() const { return task_->status(); }

Status Work::wait(Deadline deadline) const {
    carry_until(deadline);  // may end it even as it leaves
    if (task_->is_complete()) return status();
    const ConnectionInfo& peer = task_->connection()->peer();
    return Status::timeout(concat(peer.to_string(), ": ", to_string(), " has not ended in time"))
        .with_process(peer.process);
}

void Work::carry_until(Deadline deadline) const {
    if (task_->is_complete()) return;
    Connection& connection = *task_->connection();
    Attendance attendance(connection);
    transport::Backoff backoff(connection.waiter());
    while (!task_->is_complete()) {
        if (attendance.carry(task_.get())) {
            backoff.reset();
            continue;
        }
        if (task_->is_complete() || deadline.passed()) return;
        backoff.pause(connection.longest_pause());
        if (backoff.slept()) attendance.look();
    }
}

void Work::release() const {
    task_->give_up();
    task_->connection()->waiter().wake();
}

const SessionId& Work::peer() const { return task_->connection()->peer().id; }

std::string Work::to_string() const {
    const bool reads = task_->order().op == transport::RmaOp::kRead;
    return concat(reads ? "a read" : "a write", " of ", task_->bytes(), " bytes");
}

WorkStats Work::stats() const {
    WorkStats stats{.bytes = task_->bytes(),
                    .blocks = task_->blocks(),
                    .pieces = task_->pieces(),
                    .taken = task_->taken()};
    const Connection& connection = *task_->connection();
    if (!connection.is_whole()) return stats;
    const auto way = way_of(connection.path(), *task_->order().plan);
    stats.path = concat(way.kind, ", ", way.how);
    stats.reasons = connection.path().reasons;
    return stats;
}

}  // namespace pccl::p2p
