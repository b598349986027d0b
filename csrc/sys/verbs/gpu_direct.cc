// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/verbs/gpu_direct.h"

#include <cerrno>

#include "csrc/base/text/text.h"
#include "csrc/sys/verbs/device.h"

namespace pccl::sys::verbs {

Result<bool> takes_dmabuf(const std::string& device) {
    PCCL_ASSIGN_OR_RETURN(const auto opened, Device::open(device));
    const Libibverbs& library = opened->verbs();
    if (library.reg_dmabuf_mr == nullptr) return false;
    PCCL_ASSIGN_OR_RETURN(const auto domain,
                          own(library.alloc_pd(opened->context()), library.dealloc_pd,
                              concat("cannot create a protection domain of ", device)));
    constexpr std::size_t kBytes = 4096;
    constexpr int kNoFile = -1;
    ibv_mr* const region =
        library.reg_dmabuf_mr(domain.get(), 0, kBytes, 0, kNoFile, IBV_ACCESS_LOCAL_WRITE);
    const int error = region == nullptr ? errno : 0;
    if (region != nullptr) library.dereg_mr(region);
    // A driver with dma-bufs finds that the descriptor is none (EBADF).
    return error != EOPNOTSUPP && error != EPROTONOSUPPORT && error != ENOSYS;
}

}  // namespace pccl::sys::verbs
