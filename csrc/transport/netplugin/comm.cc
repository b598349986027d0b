// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/netplugin/comm.h"

#include <array>

#include "csrc/base/log/log.h"

namespace pccl::transport::netplugin {
namespace {

constexpr int kTag = 0;

void log_failure(const Status& status) {
    if (!status.is_ok()) log(LogLevel::kDebug, status.message());
}

}  // namespace

Comm::~Comm() {
    if (comm_ == nullptr) return;
    if (is_registered_) log_failure(caller_.plugin->dereg_mr(*caller_.slot, comm_, mhandle_));
    log_failure((caller_.plugin->*closer_)(*caller_.slot, comm_));
}

Status Comm::attach(std::shared_ptr<Mapping> mapping) {
    memory_ = std::move(mapping);
    PCCL_ASSIGN_OR_RETURN(mhandle_, caller_.plugin->reg_mr(*caller_.slot, comm_, memory()));
    is_registered_ = true;
    return Status::ok();
}

Result<void*> Comm::isend(std::span<std::byte> bytes) const {
    return caller_.plugin->isend(*caller_.slot, comm_, bytes, kTag, mhandle_);
}

Result<void*> Comm::irecv(std::span<std::byte> into) const {
    const std::array recvs{sys::net_plugin::GroupedRecv{
        .data = into.data(), .bytes = into.size(), .tag = kTag, .mhandle = mhandle_}};
    return caller_.plugin->irecv(*caller_.slot, comm_, recvs);
}

Result<bool> Comm::test(void* request, int& bytes) const {
    return caller_.plugin->test(*caller_.slot, request, {&bytes, 1});
}

Result<Comm> Comm::accept(Closer closer) const {
    PCCL_ASSIGN_OR_RETURN(void* const accepted, caller_.plugin->accept(*caller_.slot, comm_));
    return accepted == nullptr ? Comm() : Comm(caller_, accepted, closer);
}

}  // namespace pccl::transport::netplugin
