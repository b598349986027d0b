// SPDX-License-Identifier: Apache-2.0

// Stands in for connection_manager.cc in a build without librdmacm's header.
#include <utility>

#include "csrc/sys/verbs/connection_manager.h"

namespace pccl::sys::verbs {
namespace {

Status no_rdmacm() {
    return Status::unavailable(
        "this build of pccl has no rdma_cm: build it where librdmacm-dev is installed");
}

}  // namespace

Result<CmLibrary> find_connection_manager() { return no_rdmacm(); }
Result<std::shared_ptr<CmChannel>> CmChannel::create() { return no_rdmacm(); }
CmChannel::~CmChannel() = default;
int CmChannel::fd() const { return -1; }
Result<std::optional<CmEvent>> CmChannel::next(const std::shared_ptr<CmChannel>&) {
    return no_rdmacm();
}
Result<CmId> CmId::create(std::shared_ptr<CmChannel>) { return no_rdmacm(); }
CmId::CmId(CmId&& other) noexcept : channel_(std::move(other.channel_)) {}
CmId& CmId::operator=(CmId&& other) noexcept {
    std::swap(channel_, other.channel_);
    return *this;
}
CmId::~CmId() = default;
Status CmId::bind(const sockaddr&) { return no_rdmacm(); }
std::uint16_t CmId::local_port() const { return 0; }
std::string CmId::device() const { return {}; }
int CmId::port() const { return 0; }
Status CmId::listen(int) { return no_rdmacm(); }
Status CmId::resolve_address(const sockaddr&, int) { return no_rdmacm(); }
Status CmId::resolve_route(int) { return no_rdmacm(); }
Status CmId::connect(const CmParameters&) { return no_rdmacm(); }
Status CmId::accept(const CmParameters&) { return no_rdmacm(); }
Status CmId::reject() { return no_rdmacm(); }
Status CmId::establish() { return no_rdmacm(); }
Result<CmId::Attributes> CmId::attributes(ibv_qp_state) const { return no_rdmacm(); }

}  // namespace pccl::sys::verbs
