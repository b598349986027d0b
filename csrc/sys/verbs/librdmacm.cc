// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/verbs/librdmacm.h"

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/library.h"
#include "csrc/sys/verbs/rdma_core_file.h"

namespace pccl::sys::verbs {
namespace {

Result<const Librdmacm*> open_rdmacm_named(const std::string& name) {
    PCCL_ASSIGN_OR_RETURN(
        void* const handle,
        open_rdma_core_file(name, "librdmacm1 to connect RDMA devices by rdma_cm"));
    static Librdmacm library;
    const char* missing = nullptr;
#define PCCL_RDMACM_FIND(function) \
    if (!find_function(handle, "rdma_" #function, library.function)) missing = "rdma_" #function;
    PCCL_RDMACM_FUNCTIONS(PCCL_RDMACM_FIND)
#undef PCCL_RDMACM_FIND
    if (missing != nullptr)
        return Status::unavailable(concat(name, " has no function ", missing,
                                          "; install librdmacm1 of rdma-core 23 or newer"));
    library.path = file_of(reinterpret_cast<const void*>(library.create_id));
    library.version = rdma_core_version_in(library.path, "librdmacm");
    return &library;
}

}  // namespace

Result<const Librdmacm*> librdmacm() {
    static const Result<const Librdmacm*> opened =
        open_chosen("PCCL_RDMACM_LIBRARY", process_config().rdma.rdmacm_file, "librdmacm.so.1",
                    open_rdmacm_named);
    return opened;
}

}  // namespace pccl::sys::verbs
