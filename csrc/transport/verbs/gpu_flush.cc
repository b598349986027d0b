// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/gpu_flush.h"

#include <algorithm>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/cuda/on_device.h"
#include "csrc/transport/rma/gpu_memory.h"

namespace pccl::transport::verbs {

using sys::cuda::DeviceWrites;

Result<std::unique_ptr<SelfReader>> SelfReader::create(std::shared_ptr<Port> port) {
    constexpr QueueDepths kReads{.sends = kMost, .receives = 1};
    PCCL_ASSIGN_OR_RETURN(auto pair, QueuePair::create(std::move(port), kReads));
    PCCL_TRY(pair->connect(pair->address()).with_context("to itself"));
    return std::unique_ptr<SelfReader>(new SelfReader(std::move(pair)));
}

Result<std::uint64_t> SelfReader::post(const std::byte* from, std::uint32_t remote_key,
                                       std::byte* into, std::uint32_t local_key) {
    ibv_sge piece{.addr = reinterpret_cast<std::uint64_t>(into), .length = 1, .lkey = local_key};
    ibv_send_wr request{};
    request.wr_id = posted_ + 1;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    request.opcode = IBV_WR_RDMA_READ;
    request.wr.rdma = {.remote_addr = reinterpret_cast<std::uint64_t>(from), .rkey = remote_key};
    PCCL_TRY(pair_->post(request));
    return ++posted_;
}

Result<bool> SelfReader::has_completed(std::uint64_t number) {
    while (completed_ < number) {
        PCCL_ASSIGN_OR_RETURN(const auto completion, pair_->next());
        if (!completion) return false;
        if (completion->status != IBV_WC_SUCCESS)
            return Status::internal(concat(pair_->port().name(),
                                           " cannot flush data into memory of a GPU by a read "
                                           "of it: ",
                                           explain(*completion)));
        completed_ = completion->id;
    }
    return true;
}

Result<bool> GpuFlusher::advance(GpuFlush& flush) {
    if (flush.gpu < 0) return true;
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, gpu_driver());
    PCCL_ASSIGN_OR_RETURN(const DeviceWrites writes, writes_of(*driver, flush.gpu));
    if (writes == DeviceWrites::kUnordered) return advance_reads(flush);
    if (writes == DeviceWrites::kFlushed) {
        const sys::cuda::OnDevice on(*driver, flush.gpu);
        PCCL_TRY(on.status());
        PCCL_TRY(driver->flush_device_writes());
    }
    return true;
}

Result<DeviceWrites> GpuFlusher::writes_of(sys::cuda::Driver& driver, int gpu) {
    const auto known = writes_.find(gpu);
    if (known != writes_.end()) return known->second;
    const sys::cuda::OnDevice on(driver, gpu);
    PCCL_TRY(on.status());
    PCCL_ASSIGN_OR_RETURN(const DeviceWrites writes, driver.device_writes(gpu));
    writes_.emplace(gpu, writes);
    return writes;
}

Result<bool> GpuFlusher::advance_reads(GpuFlush& flush) {
    for (std::size_t device = 0; flush.devices >> device != 0; ++device)
        if ((flush.devices >> device & 1) != 0) PCCL_TRY(begin_read(flush, device));
    for (auto read = flush.reads.begin(); read != flush.reads.end();) {
        const auto reader = readers_.find(read->first);
        if (reader == readers_.end())
            return Status::internal("another flush of the device has failed");
        const auto completed = reader->second->has_completed(read->second);
        if (!completed.is_ok()) readers_.erase(reader);
        PCCL_TRY(completed.status());
        read = *completed ? flush.reads.erase(read) : std::next(read);
    }
    return flush.devices == 0 && flush.reads.empty();
}

/// Does nothing where the device has no room now.
Status GpuFlusher::begin_read(GpuFlush& flush, std::size_t device) {
    PCCL_ASSIGN_OR_RETURN(SelfReader* const reader, reader_of(device));
    if (!reader->has_room()) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const LocalPiece from, registrations_->find(flush.at, device));
    PCCL_ASSIGN_OR_RETURN(std::byte* const scratch, registrations_->scratch());
    PCCL_ASSIGN_OR_RETURN(const LocalPiece into, registrations_->find(scratch, device));
    PCCL_ASSIGN_OR_RETURN(flush.reads[device],
                          reader->post(flush.at, from.remote_key, scratch, into.key));
    flush.devices &= ~(std::uint64_t{1} << device);
    return Status::ok();
}

Result<SelfReader*> GpuFlusher::reader_of(std::size_t device) {
    std::unique_ptr<SelfReader>& reader = readers_[device];
    if (reader != nullptr) return reader.get();
    const auto& adapter = registrations_->adapters()[device];
    const auto port = std::ranges::find(ports_, adapter, &Port::adapter);
    auto created = SelfReader::create(*port);
    if (!created.is_ok()) readers_.erase(device);
    PCCL_TRY(created.status());
    reader = std::move(*created);
    return reader.get();
}

}  // namespace pccl::transport::verbs
