// A device's context, current on this thread for a while: callers of the library have their own.
#pragma once

#include "csrc/base/status.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::sys::cuda {

class OnDevice {
   public:
    OnDevice(Driver& driver, int device) : driver_(driver), status_(driver.enter(device)) {}
    ~OnDevice() {
        if (status_.is_ok()) static_cast<void>(driver_.leave());
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

    /// Why it is not current.
    [[nodiscard]] const Status& status() const { return status_; }

   private:
    Driver& driver_;
    const Status status_;
};

}  // namespace pccl::sys::cuda
