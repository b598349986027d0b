// SPDX-License-Identifier: Apache-2.0

// Objects of which a process has one for each GPU.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <pccl/status.h>
#include "csrc/sys/cuda/driver.h"

namespace pccl::sys::cuda {

/// Registry of objects that live while a caller holds them. Thread-safe.
template <typename T>
class PerDevice {
   public:
    /// Returns the object for `device` of `driver`; creates it with make(), which returns a Result
    /// of a shared pointer.
    template <typename Make>
    Result<std::shared_ptr<T>> find_or(Driver& driver, int device, Make make) {
        const std::lock_guard lock(mutex_);
        std::weak_ptr<T>& known = known_[{&driver, device}];
        if (auto found = known.lock()) return found;
        PCCL_ASSIGN_OR_RETURN(std::shared_ptr<T> made, make());
        known = made;
        return made;
    }

   private:
    std::mutex mutex_;
    std::map<std::pair<Driver*, int>, std::weak_ptr<T>> known_;
};

}  // namespace pccl::sys::cuda
