// SPDX-License-Identifier: Apache-2.0

// Access to the target of a handle, unless this process is a child of fork().
//
// Threads that a child does not have change the targets of handles. A target may also lie in memory
// that a child shares with its parent, where an access would act for the parent. A handle reaches
// its target by a ForkChecked alone, which checks the process first.
#pragma once

#include <string_view>
#include <utility>

#include <pccl/status.h>
#include "csrc/base/fork.h"
#include "csrc/base/text/text.h"

namespace pccl {

/// View of a target, for one call.
template <typename T>
class ForkChecked {
   public:
    /// `made_in` is from the process that made the target; `what` names the handle in errors, as a
    /// literal: "work".
    ForkChecked(const ForkMark& made_in, T& target, std::string_view what)
        : is_child_(made_in.is_child()), target_(target), what_(what) {}

    /// Returns kUnavailable in a child.
    [[nodiscard]] Status check() const {
        if (!is_child_) return Status::ok();
        return Status::unavailable(
            concat("this ", what_, " is of the process that this one was forked from"));
    }
    /// Returns the target; kUnavailable in a child.
    [[nodiscard]] Result<T*> get() const {
        PCCL_TRY(check());
        return &target_;
    }
    /// Returns `use(target)`; in a child `otherwise`.
    template <typename R, typename Use>
    [[nodiscard]] R use(R otherwise, const Use& use) const {
        return is_child_ ? std::move(otherwise) : static_cast<R>(use(target_));
    }
    /// Runs `use(target)`; does nothing in a child.
    template <typename Use>
    void use(const Use& use) const {
        if (!is_child_) use(target_);
    }

   private:
    const bool is_child_;
    T& target_;
    const std::string_view what_;
};

}  // namespace pccl
