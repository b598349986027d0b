// SPDX-License-Identifier: Apache-2.0

// Guard that makes a device's context current on this thread and restores the caller's own
// afterwards.
#pragma once

#include <pccl/status.h>
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

    /// Returns ok, or the reason why the context is not current.
    [[nodiscard]] const Status& status() const { return status_; }

   private:
    Driver& driver_;
    const Status status_;
};

}  // namespace pccl::sys::cuda
