// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/verbs/rdma_core_file.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>

#include "csrc/base/text/text.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys::verbs {

Result<void*> open_rdma_core_file(const std::string& name, std::string_view package) {
    // The dynamic linker would wait for a pipe.
    const bool is_searched = name.find('/') == std::string::npos;
    if (!is_searched) PCCL_TRY(read_start(name, 1).status());
    void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return handle;
    return Status::unavailable(
        concat(name, " cannot be opened (", ::dlerror(), "); install rdma-core's ", package));
}

std::string file_of(const void* function) {
    Dl_info info{};
    if (::dladdr(function, &info) == 0 || info.dli_fname == nullptr) return {};
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(info.dli_fname, nullptr),
                                                           &std::free);
    return real != nullptr ? std::string(real.get()) : std::string(info.dli_fname);
}

std::string rdma_core_version_in(const std::string& path, std::string_view name) {
    const std::string start = concat(name, ".so.1.");
    const std::size_t at = path.rfind(start);
    if (at == std::string::npos) return {};
    const std::size_t minor_end = path.find('.', at + start.size());
    return minor_end == std::string::npos ? std::string() : path.substr(minor_end + 1);
}

}  // namespace pccl::sys::verbs
