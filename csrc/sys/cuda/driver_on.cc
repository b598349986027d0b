// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "csrc/sys/cuda/driver.h"

namespace pccl::sys::cuda {
namespace {

std::atomic<Driver*> stand_in{nullptr};

}  // namespace

void let_stand_in(Driver* driver) { stand_in.store(driver); }

Result<Driver*> process_driver() {
    if (Driver* const driver = stand_in.load()) return driver;
    return machine_driver();
}

Result<Driver*> driver_on(int device, Driver* given) {
    if (given == nullptr) {
        PCCL_ASSIGN_OR_RETURN(given, process_driver());
    }
    PCCL_TRY(given->use(device));
    return given;
}

}  // namespace pccl::sys::cuda
