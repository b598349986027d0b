// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/net_plugin/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

#include "csrc/base/text/text.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys::net_plugin {
namespace {

// Versions that NCCL may have beyond those that are known here.
constexpr int kMostVersion = 32;

std::string symbol_of(int version) { return concat("ncclNetPlugin_v", version); }

std::string path_of(void* library, const std::string& name) {
    ::link_map* map = nullptr;
    if (::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr)
        return name;
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(map->l_name, nullptr),
                                                           &std::free);
    return real != nullptr ? std::string(real.get()) : std::string(map->l_name);
}

Result<void*> open_file(const std::string& name) {
    // The dynamic linker would wait for a pipe.
    if (name.find('/') != std::string::npos) PCCL_TRY(read_start(name, 1).status());
    void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    return Status::unavailable(concat(name, " cannot be opened (", ::dlerror(), ")"));
}

Result<void*> open_first(const std::string& name) {
    std::string reasons;
    for (const std::string& candidate : library_names(name)) {
        auto opened = open_file(candidate);
        if (opened.is_ok()) return opened;
        reasons += concat(reasons.empty() ? "" : "; ", opened.status().message());
    }
    return Status::invalid_argument(std::move(reasons));
}

/// Returns which tables a library exports, of which no version is known.
std::string describe_tables(void* library) {
    for (int version = kMostVersion; version > 0; --version)
        if (::dlsym(library, symbol_of(version).c_str()) != nullptr)
            return concat("exports ", symbol_of(version), " alone");
    return "exports no ncclNetPlugin_v<version>";
}

}  // namespace

std::vector<std::string> library_names(const std::string& name) {
    std::vector<std::string> names{name};
    const bool is_library = name.starts_with("lib") && name.ends_with(".so");
    if (name.find('/') == std::string::npos && !is_library)
        names.push_back(concat("libnccl-net-", name, ".so"));
    return names;
}

Result<Library> open_library(const std::string& name, int newest) {
    PCCL_ASSIGN_OR_RETURN(void* const library, open_first(name));
    Library opened{.file = path_of(library, name), .symbol = {}, .table = nullptr};
    for (int version = newest; version >= net::kOldestVersion; --version) {
        opened.symbol = symbol_of(version);
        const void* const symbol = ::dlsym(library, opened.symbol.c_str());
        if (symbol == nullptr) continue;
        opened.table = adapt(version, symbol);
        const char* const missing = opened.table->missing_function();
        if (missing == nullptr) return opened;
        return Status::unavailable(
            concat(opened.file, ": ", opened.symbol, " has no function ", missing));
    }
    return Status::unavailable(concat(opened.file, " ", describe_tables(library),
                                      "; use a plug-in ", "with ", symbol_of(net::kOldestVersion),
                                      " to ", symbol_of(net::kNewestVersion)));
}

}  // namespace pccl::sys::net_plugin
