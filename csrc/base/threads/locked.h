// SPDX-License-Identifier: Apache-2.0

// Value with the lock that guards it, held while this object lives.
#pragma once

#include <mutex>

namespace pccl {

template <typename T>
class Locked {
   public:
    Locked(std::mutex& mutex, T& value) : lock_(mutex), value_(value) {}

    T* operator->() const { return &value_; }
    T& operator*() const { return value_; }

   private:
    std::unique_lock<std::mutex> lock_;
    T& value_;
};

}  // namespace pccl
