// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/verbs/libibverbs.h"

#include <cerrno>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/library.h"
#include "csrc/sys/verbs/rdma_core_file.h"

namespace pccl::sys::verbs {
namespace {

Result<const Libibverbs*> open_named(const std::string& name) {
    PCCL_ASSIGN_OR_RETURN(
        void* const handle,
        open_rdma_core_file(name, "libibverbs1 and ibverbs-providers to use RDMA"));
    static Libibverbs library;
    const char* missing = nullptr;
#define PCCL_VERBS_FIND(function) \
    if (!find_function(handle, "ibv_" #function, library.function)) missing = "ibv_" #function;
    PCCL_VERBS_REQUIRED(PCCL_VERBS_FIND)
#undef PCCL_VERBS_FIND
    if (missing != nullptr)
        return Status::unavailable(concat(name, " has no function ", missing,
                                          "; install libibverbs1 of rdma-core 17 or newer"));
#define PCCL_VERBS_FIND(function) find_function(handle, "ibv_" #function, library.function);
    PCCL_VERBS_OPTIONAL(PCCL_VERBS_FIND)
#undef PCCL_VERBS_FIND
    find_function(handle, "_ibv_query_gid_ex", library.query_gid_ex);
    library.path = file_of(reinterpret_cast<const void*>(library.get_device_list));
    library.version = rdma_core_version_in(library.path, "libibverbs");
    return &library;
}

}  // namespace

Result<const Libibverbs*> libibverbs() {
    static const Result<const Libibverbs*> opened = open_chosen(
        "PCCL_IBVERBS_LIBRARY", process_config().rdma.ibverbs_file, "libibverbs.so.1", open_named);
    return opened;
}

Status prepare_fork(const Libibverbs& library) {
    static const Status prepared = [&] {
        const int failure = library.fork_init();
        // Another user of the library may have registered memory already, on a kernel that needs
        // nothing.
        const bool is_needless = library.is_fork_initialized != nullptr &&
                                 library.is_fork_initialized() == IBV_FORK_UNNEEDED;
        if (failure == 0 || is_needless) return Status::ok();
        return Status::from_errno(failure,
                                  "ibv_fork_init fails: another library registered memory before; "
                                  "set RDMAV_FORK_SAFE=1");
    }();
    return prepared;
}

}  // namespace pccl::sys::verbs
