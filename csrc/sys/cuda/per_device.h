// What a process has once for each GPU.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::sys::cuda {

/// Objects that live as long as somebody holds them. Safe from every thread.
template <typename T>
class PerDevice {
   public:
    /// The one for `device` of `driver`; else what make() gives, a Result of a shared pointer.
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
