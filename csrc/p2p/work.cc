#include "csrc/p2p/work.h"

#include <utility>

#include "csrc/base/text.h"
#include "csrc/p2p/connection.h"
#include "csrc/p2p/task.h"

namespace pccl::p2p {
namespace {

void carry_task_until(const Task& task, Deadline deadline) {
    if (task.is_complete()) return;
    Attendance attendance(*task.connection());
    attendance.carry_until(
        deadline, [&] { return attendance.carry(&task); }, [&] { return task.is_complete(); });
}

WorkStats stats_of(const Task& task) {
    WorkStats stats{.bytes = task.bytes(),
                    .blocks = task.blocks(),
                    .pieces = task.pieces(),
                    .taken = task.taken()};
    const Connection& connection = *task.connection();
    if (!connection.is_whole()) return stats;
    const auto way = way_of(connection.path(), *task.order().plan);
    stats.path = concat(way.kind, ", ", way.how);
    stats.reasons = connection.path().reasons;
    return stats;
}

}  // namespace

Work::Work(std::shared_ptr<Task> task) : task_(std::move(task), "work") {}

bool Work::is_complete() const {
    return task_.use(true, [](const Task& task) { return task.is_complete(); });
}

bool Work::poll() const {
    return task_.use(true, [](const Task& task) {
        if (task.is_complete()) return true;
        Attendance attendance(*task.connection());
        attendance.carry(&task);
        return task.is_complete();
    });
}

Status Work::status() const {
    PCCL_ASSIGN_OR_RETURN(const Task* const task, task_.get());
    return task->status();
}

Status Work::wait(Deadline deadline) const {
    PCCL_ASSIGN_OR_RETURN(const Task* const task, task_.get());
    carry_task_until(*task, deadline);  // may end it even as it leaves
    if (task->is_complete()) return task->status();
    const ConnectionInfo& peer = task->connection()->peer();
    return Status::timeout(concat(peer.to_string(), ": ", to_string(), " has not ended in time"))
        .with_process(peer.process);
}

void Work::release() const {
    task_.use([](Task& task) {
        task.give_up();
        task.connection()->waiter().wake();
    });
}

const SessionId& Work::peer() const { return task_.constants().connection()->peer().id; }

std::string Work::to_string() const {
    const Task& task = task_.constants();
    const bool reads = task.order().op == transport::RmaOp::kRead;
    return concat(reads ? "a read" : "a write", " of ", task.bytes(), " bytes");
}

WorkStats Work::stats() const {
    return task_.use(WorkStats(), [](const Task& task) { return stats_of(task); });
}

}  // namespace pccl::p2p
