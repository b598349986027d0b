// SPDX-License-Identifier: Apache-2.0

// The strict net plug-in (tests/fakes/netplugin) as tests find and control it.
#pragma once

#include <dlfcn.h>

#include <string>

#include "tests/fakes/places.h"

namespace pccl::fakes {

/// Returns the file of the strict plug-in that has the table of one version; 0: of all versions.
[[nodiscard]] inline std::string strict_net_plugin_of(int version) {
    std::string file = strict_net_plugin();
    if (version == 0) return file;
    return file.insert(file.rfind(".so"), "_v" + std::to_string(version));
}

/// A strict plug-in as tests control it.
class StrictPlugin {
   public:
    explicit StrictPlugin(const std::string& file)
        : library_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {}

    /// Sets its rules (tests/fakes/netplugin/rules.h).
    void set(const std::string& rules) const {
        reinterpret_cast<void (*)(const char*)>(::dlsym(library_, "pccl_strict_set"))(
            rules.c_str());
    }
    /// Returns how often the ABI was violated so far.
    [[nodiscard]] long violations() const {
        return reinterpret_cast<long (*)()>(::dlsym(library_, "pccl_strict_violations"))();
    }

    /// Returns how often a function was called since the rules were set.
    [[nodiscard]] long calls(const char* call) const {
        return reinterpret_cast<long (*)(const char*)>(::dlsym(library_, "pccl_strict_calls"))(
            call);
    }
    /// Returns the number of communicators, those that connect among them.
    [[nodiscard]] long communicators() const {
        return reinterpret_cast<long (*)()>(::dlsym(library_, "pccl_strict_communicators"))();
    }

    /// Returns the bytes of messages that a device has sent.
    [[nodiscard]] long sent(int device) const {
        return reinterpret_cast<long (*)(int)>(::dlsym(library_, "pccl_strict_sent"))(device);
    }

   private:
    void* library_;
};

}  // namespace pccl::fakes
