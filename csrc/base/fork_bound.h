// SPDX-License-Identifier: Apache-2.0

// Shared ownership whose target is unreachable in a child of fork().
//
// Threads that a child does not have change the targets of handles. A target may also lie in memory
// that a child shares with its parent, where an access would act for the parent. A ForkBound is the
// only access to its target, and checks the process first.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include <pccl/status.h>
#include "csrc/base/fork.h"
#include "csrc/base/text.h"

namespace pccl {

template <typename T>
class ForkBound {
   public:
    /// Takes the target; `what` names the handle in errors, as a literal: "work".
    ForkBound(std::shared_ptr<T> target, std::string_view what)
        : target_(std::move(target)), what_(what) {}

    /// Returns kUnavailable in a child.
    [[nodiscard]] Status check() const {
        if (!made_in_.is_child()) return Status::ok();
        return Status::unavailable(
            concat("this ", what_, " is of the process that this one was forked from"));
    }
    /// Returns the target; kUnavailable in a child.
    [[nodiscard]] Result<T*> get() const {
        PCCL_TRY(check());
        return target_.get();
    }
    /// Returns `use(target)`; in a child `otherwise`.
    template <typename R, typename Use>
    [[nodiscard]] R use(R otherwise, const Use& use) const {
        return made_in_.is_child() ? std::move(otherwise) : static_cast<R>(use(*target_));
    }
    /// Runs `use(target)`; does nothing in a child.
    template <typename Use>
    void use(const Use& use) const {
        if (!made_in_.is_child()) use(*target_);
    }
    /// Returns the target with shared ownership; null in a child.
    [[nodiscard]] std::shared_ptr<T> share() const {
        return made_in_.is_child() ? nullptr : target_;
    }
    /// Returns the target for access to members that never change after construction; these are
    /// valid in a child, too.
    [[nodiscard]] const T& constants() const { return *target_; }

   private:
    ForkMark made_in_;
    std::shared_ptr<T> target_;
    std::string_view what_;
};

}  // namespace pccl
