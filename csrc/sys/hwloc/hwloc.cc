// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/hwloc/hwloc.h"

#include <dlfcn.h>

#include "csrc/base/scope_exit.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/library.h"

namespace pccl::sys {
namespace {

// The functions are declared here so that no build needs hwloc's headers. They belong to its stable
// interface since version 2.0.
using Handle = void*;
constexpr int kKeepImportant = 3;  // HWLOC_TYPE_FILTER_KEEP_IMPORTANT

struct HwlocFunctions {
    int (*init)(Handle*) = nullptr;
    void (*destroy)(Handle) = nullptr;
    int (*keep_devices)(Handle, int) = nullptr;
    int (*load)(Handle) = nullptr;
    int (*write)(Handle, char**, int*, unsigned long) = nullptr;
    void (*free_text)(Handle, char*) = nullptr;
};

bool find_all(void* library, HwlocFunctions& functions) {
    return find_function(library, "hwloc_topology_init", functions.init) &&
           find_function(library, "hwloc_topology_destroy", functions.destroy) &&
           find_function(library, "hwloc_topology_set_io_types_filter", functions.keep_devices) &&
           find_function(library, "hwloc_topology_load", functions.load) &&
           find_function(library, "hwloc_topology_export_xmlbuffer", functions.write) &&
           find_function(library, "hwloc_free_xmlbuffer", functions.free_text);
}

Result<std::string> read_with(const HwlocFunctions& call) {
    Handle topology = nullptr;
    if (call.init(&topology) != 0) return Status::unavailable("hwloc does not start");
    const ScopeExit destroy([&] { call.destroy(topology); });
    char* text = nullptr;
    int length = 0;
    if (call.keep_devices(topology, kKeepImportant) != 0 || call.load(topology) != 0 ||
        call.write(topology, &text, &length, 0) != 0 || length <= 0)
        return Status::unavailable("hwloc cannot look at this machine");
    const ScopeExit release([&] { call.free_text(topology, text); });
    // The length includes the terminating zero.
    return std::string(text, static_cast<std::size_t>(length) - 1);
}

}  // namespace

Result<std::string> read_hwloc(const char* library) {
    void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return Status::unavailable(concat(library, " is not installed"));
    const ScopeExit close([&] { ::dlclose(handle); });
    HwlocFunctions functions;
    if (!find_all(handle, functions))
        return Status::unavailable(concat(library, " is no hwloc 2: it lacks a function"));
    return read_with(functions);
}

}  // namespace pccl::sys
