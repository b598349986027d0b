// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/session/stream_order.h"

#include <utility>

#include <pccl/transfer.h>
#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/connection.h"
#include "csrc/p2p/session/session_core.h"
#include "csrc/p2p/transfers/registered_memory.h"
#include "csrc/sys/cuda/on_device.h"
#include "csrc/transport/rma/gpu_memory.h"
#include "csrc/transport/rma/gpu_stream.h"

namespace pccl::p2p {
namespace {

/// Returns kUnsupported where this process has no CUDA, and while the stream is being captured.
Status check_stream(const Stream& stream) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, transport::gpu_driver());
    const sys::cuda::OnDevice on(*driver, stream.device);
    PCCL_TRY(on.status());
    PCCL_ASSIGN_OR_RETURN(const std::uint64_t graph, driver->capture_of(stream.stream));
    if (graph == 0) return Status::ok();
    return Status::unsupported(
        "the stream is being captured: a graph would replay what a transfer does once");
}

Status keeps_no_order(const ConnectionInfo& peer, std::string_view why) {
    return Status::unsupported(
               concat("a read of memory of ", peer.to_string(),
                      " keeps the order of a stream only where CUDA IPC shares that (", why,
                      "): synchronise the stream, read without it, and wait"))
        .with_process(peer.process);
}

/// Returns an empty text where both memories are on GPUs.
std::string_view what_is_of_host(const Plan& plan) {
    if (registered(plan.local()).memory().kind != abi::MemoryKind::kGpu)
        return "the local memory is the host's";
    if (!plan.remote().is_gpu()) return "it is the host's";
    return {};
}

/// Errors are those of Session::connect().
Status await_connection(SessionCore& core, const Connection& connection, Deadline deadline) {
    const auto is_decided = [&] { return connection.is_whole() || connection.is_lost(); };
    if (progress_until(core, deadline, is_decided)) return connection.why_lost();
    return Status::timeout(concat(connection.peer().to_string(), " is not connected in time"))
        .with_process(connection.peer().process);
}

}  // namespace

Result<StreamEvent> event_of(const Stream& stream) {
    PCCL_TRY(check_stream(stream));
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, transport::gpu_driver());
    return transport::GpuEvent::of(*driver, stream);
}

Result<std::shared_ptr<TransferRequest>> begin_ordered_read(SessionCore& core, TransferArgs args,
                                                            Deadline deadline) {
    const std::string_view of_host = what_is_of_host(*args.plan);
    // Checked first: the driver cannot open memory while a stream is captured.
    if (of_host.empty()) PCCL_TRY(check_stream(*args.in_order_of));
    PCCL_ASSIGN_OR_RETURN(const ChosenConnection chosen, core.connection_for(*args.plan));
    const auto& connection = chosen.connection;
    const ConnectionInfo& peer = connection->peer();
    if (!of_host.empty()) return keeps_no_order(peer, of_host);
    PCCL_TRY(await_connection(core, *connection, deadline));
    const ConnectionRoute& path = connection->route();
    if (!path.is_copied_here())
        return keeps_no_order(peer, path.is_direct ? "the path is RDMA" : path.reasons);
    PCCL_TRY(registered(args.plan->local()).begin_use());
    return connection->begin_transfer(std::move(args));
}

}  // namespace pccl::p2p
