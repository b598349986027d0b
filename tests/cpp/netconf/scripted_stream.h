// SPDX-License-Identifier: Apache-2.0

// A server that says what a test wrote down, whatever it hears.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "csrc/netconf/stream.h"

namespace pccl::netconf {

/// What both ends of a stream have said. Outlives the stream.
struct Script {
    std::string reported = {};          // by the server, and not read yet
    std::string received = {};          // from the client
    std::size_t at_a_time = 1U << 20U;  // bytes each way
    Status end = Status::ok();          // what reading gives once all is read
    Status refusal = Status::ok();      // what connecting gives
    std::string without_end = {};       // said again and again, once all else is read
};

class ScriptedStream final : public ByteStream {
   public:
    explicit ScriptedStream(Script& script) : script_(script) {}

    Result<bool> connect_step() override {
        PCCL_TRY(script_.refusal);
        return true;
    }
    Result<std::size_t> write_some(std::string_view bytes) override {
        const std::size_t taken = std::min(bytes.size(), script_.at_a_time);
        script_.received += bytes.substr(0, taken);
        return taken;
    }
    Result<std::size_t> read_some(std::span<char> into) override {
        const std::size_t got = std::min({into.size(), script_.reported.size(), script_.at_a_time});
        if (got == 0 && !script_.without_end.empty()) {
            script_.reported = script_.without_end;
            return read_some(into);
        }
        if (got == 0) PCCL_TRY(script_.end);
        std::copy_n(script_.reported.begin(), got, into.begin());
        script_.reported.erase(0, got);
        return got;
    }
    [[nodiscard]] sys::Interest interest() const override { return {}; }

   private:
    Script& script_;
};

}  // namespace pccl::netconf
