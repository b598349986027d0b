// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/verbs/libibverbs.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/library.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys::verbs {
namespace {

/// Returns the file that contains `function`, without symbolic links.
std::string file_of(const void* function) {
    Dl_info info{};
    if (::dladdr(function, &info) == 0 || info.dli_fname == nullptr) return {};
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(info.dli_fname, nullptr),
                                                           &std::free);
    return real != nullptr ? std::string(real.get()) : std::string(info.dli_fname);
}

/// Returns the version in a file name of the form libibverbs.so.1.<minor>.<version>.
std::string version_in(const std::string& path) {
    constexpr std::string_view kName = "libibverbs.so.1.";
    const std::size_t at = path.rfind(kName);
    if (at == std::string::npos) return {};
    const std::size_t minor_end = path.find('.', at + kName.size());
    return minor_end == std::string::npos ? std::string() : path.substr(minor_end + 1);
}

/// Returns ok for a file that the dynamic linker can read without waiting.
Status check_file(const std::string& path) {
    const bool is_searched = path.find('/') == std::string::npos;
    return is_searched ? Status::ok() : read_start(path, 1).status();
}

Result<const Libibverbs*> open_named(const std::string& name) {
    PCCL_TRY(check_file(name));
    void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
        return Status::unavailable(concat(name, " cannot be opened (", ::dlerror(),
                                          "); install rdma-core's libibverbs1 and "
                                          "ibverbs-providers to use RDMA"));
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
    library.version = version_in(library.path);
    return &library;
}

Result<const Libibverbs*> open_library() {
    const std::string& chosen = process_config().rdma.ibverbs_file;
    if (chosen.empty()) return open_named("libibverbs.so.1");
    auto opened = open_named(chosen);
    if (opened.is_ok()) return opened;
    return Status::invalid_argument(concat("PCCL_IBVERBS_LIBRARY: ", opened.status().message()));
}

}  // namespace

Result<const Libibverbs*> libibverbs() {
    static const Result<const Libibverbs*> opened = open_library();
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
