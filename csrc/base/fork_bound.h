// Shared ownership that reaches nothing in a child of fork().
//
// What handles lead to is changed by threads that a child does not have, and may lie in memory that
// a child shares with its parent: to look at it there is to act for the parent. A ForkBound is the
// only way to its target, and asks first.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "csrc/base/fork.h"
#include "csrc/base/status.h"
#include "csrc/base/text.h"

namespace pccl {

template <typename T>
class ForkBound {
   public:
    /// `what` names the handle in errors, as a literal: "work".
    ForkBound(std::shared_ptr<T> target, std::string_view what)
        : target_(std::move(target)), what_(what) {}

    /// kUnavailable in a child.
    [[nodiscard]] Status check() const {
        if (!made_in_.is_child()) return Status::ok();
        return Status::unavailable(
            concat("this ", what_, " is of the process that this one was forked from"));
    }
    /// The same, or the target.
    [[nodiscard]] Result<T*> get() const {
        PCCL_TRY(check());
        return target_.get();
    }
    /// What `use(target)` gives; in a child `otherwise`.
    template <typename R, typename Use>
    [[nodiscard]] R use(R otherwise, const Use& use) const {
        return made_in_.is_child() ? std::move(otherwise) : static_cast<R>(use(*target_));
    }
    /// Runs `use(target)`; in a child nothing.
    template <typename Use>
    void use(const Use& use) const {
        if (!made_in_.is_child()) use(*target_);
    }
    /// The target's own ownership; null in a child.
    [[nodiscard]] std::shared_ptr<T> share() const {
        return made_in_.is_child() ? nullptr : target_;
    }
    /// For what never changes once the target is made, and is the child's as well.
    [[nodiscard]] const T& constants() const { return *target_; }

   private:
    ForkMark made_in_;
    std::shared_ptr<T> target_;
    std::string_view what_;
};

}  // namespace pccl
