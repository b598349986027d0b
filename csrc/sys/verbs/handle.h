// SPDX-License-Identifier: Apache-2.0

// Owner of an object of libibverbs.
#pragma once

#include <cerrno>
#include <string_view>
#include <utility>

#include <pccl/status.h>
#include "csrc/base/fork.h"

namespace pccl::sys::verbs {

/// Owner, which destroys the object in the process that made it alone: a child of fork() must not
/// touch a device of its parent.
template <typename Object>
class Handle {
   public:
    using Destroy = int (*)(Object*);

    Handle() = default;
    Handle(Object* object, Destroy destroy) : object_(object), destroy_(destroy) {}
    Handle(Handle&& other) noexcept
        : made_in_(other.made_in_),
          object_(std::exchange(other.object_, nullptr)),
          destroy_(other.destroy_) {}
    Handle& operator=(Handle&& other) noexcept {
        std::swap(made_in_, other.made_in_);
        std::swap(object_, other.object_);
        std::swap(destroy_, other.destroy_);
        return *this;
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() {
        if (object_ != nullptr && !made_in_.is_child()) destroy_(object_);
    }

    [[nodiscard]] Object* get() const { return object_; }
    [[nodiscard]] Object* operator->() const { return object_; }
    [[nodiscard]] explicit operator bool() const { return object_ != nullptr; }

   private:
    ForkMark made_in_;
    Object* object_ = nullptr;
    Destroy destroy_ = nullptr;
};

/// Takes ownership of a new object; null stands for a failed call, whose errno becomes the error.
/// `what` names the failure: "cannot create a queue pair".
template <typename Object>
[[nodiscard]] Result<Handle<Object>> own(Object* object, int (*destroy)(Object*),
                                         std::string_view what) {
    if (object != nullptr) return Handle<Object>(object, destroy);
    return Status::from_errno(errno, what);
}

}  // namespace pccl::sys::verbs
