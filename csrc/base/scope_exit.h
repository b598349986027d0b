// SPDX-License-Identifier: Apache-2.0

// Guard that runs a function when the scope ends, unless it was dismissed.
#pragma once

#include <utility>

namespace pccl {

template <typename Function>
class [[nodiscard]] ScopeExit {
   public:
    explicit ScopeExit(Function function) : function_(std::move(function)) {}
    ScopeExit(const ScopeExit&) = delete;
    ScopeExit& operator=(const ScopeExit&) = delete;
    ~ScopeExit() {
        if (armed_) function_();
    }
    void dismiss() { armed_ = false; }

   private:
    Function function_;
    bool armed_ = true;
};

}  // namespace pccl
