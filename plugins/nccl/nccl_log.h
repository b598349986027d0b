// SPDX-License-Identifier: Apache-2.0

// Lines in NCCL's log (NCCL_DEBUG), by the function that init passes.
#pragma once

#include <atomic>
#include <string>

#include "csrc/abi/net_plugin/common.h"
#include "csrc/base/text/text.h"

namespace pccl::nccl {

/// Log of the process. Thread-safe.
class NcclLog {
   public:
    void set(abi::net_plugin::Logger logger) { logger_ = logger; }
    template <typename... Parts>
    void info(const Parts&... parts) const {
        write(abi::net_plugin::LogLevel::kInfo, concat("NET/PCCL: ", parts...));
    }
    template <typename... Parts>
    void warn(const Parts&... parts) const {
        write(abi::net_plugin::LogLevel::kWarn, concat("NET/PCCL: ", parts...));
    }

   private:
    void write(abi::net_plugin::LogLevel level, const std::string& line) const {
        constexpr auto kFlags = abi::net_plugin::kLogInit | abi::net_plugin::kLogNet;
        if (const auto logger = logger_.load())
            logger(level, kFlags, "libnccl-net-pccl", 0, "%s", line.c_str());
    }

    std::atomic<abi::net_plugin::Logger> logger_ = nullptr;
};

/// Returns the log of this process.
NcclLog& nccl_log();

}  // namespace pccl::nccl
