// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/py_gpu_workspace.h"

#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/seconds.h"
#include "csrc/extension/gil.h"
#include "csrc/extension/signals.h"

namespace pccl::bindings {

namespace py = pybind11;

namespace {

constexpr std::string_view kCuda = "cuda";

/// Returns the CUDA ordinal for "cuda" (the only GPU) or "cuda:N".
Result<int> gpu_named(std::string_view device) {
    PCCL_ASSIGN_OR_RETURN(const int count, device::count_gpus());
    const auto refused = [&](std::string_view why) {
        return Status::invalid_argument(concat("device '", device, "': ", why,
                                               "; this process has ", count,
                                               " visible GPUs, \"cuda:0\" is the first"));
    };
    std::string_view rest = device.substr(kCuda.size());
    if (rest.empty()) {
        if (count == 1) return 0;
        return refused("which of them?");
    }
    if (!rest.starts_with(':')) return refused("it must be \"cuda\" or \"cuda:N\"");
    rest.remove_prefix(1);
    const auto number = number_in(rest, 0, count - 1);
    if (!number) return refused("there is no such GPU");
    return *number;
}

/// Memory of a DLPack consumer: the whole of one part.
struct Exported {
    explicit Exported(const PyGpuMemory& of, int device);
    Exported(const Exported&) = delete;
    Exported& operator=(const Exported&) = delete;
    ~Exported() = default;

    PyGpuMemory memory;
    std::array<std::int64_t, 1> shape;
    dlpack::ManagedTensor managed;
};

void end_export(dlpack::ManagedTensor* managed) {
    const std::unique_ptr<Exported> ended(static_cast<Exported*>(managed->context));
}

Exported::Exported(const PyGpuMemory& of, int device)
    : memory(of),
      shape{static_cast<std::int64_t>(of.bytes())},
      managed{.tensor = {.data = std::bit_cast<void*>(of.address()),
                         .device = {.type = dlpack::DeviceType::kCuda, .number = device},
                         .dimensions = 1,
                         .type = {.code = dlpack::TypeCode::kUint, .bits = 8, .lanes = 1},
                         .shape = shape.data(),
                         .strides = nullptr,
                         .byte_offset = 0},
              .context = this,
              .deleter = end_export} {}

constexpr const char* kUnused = "dltensor";  // a consumer renames it

void drop_unused(PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, kUnused) == 0) return;
    end_export(static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule, kUnused)));
}

}  // namespace

PyGpuMemory::PyGpuMemory(std::shared_ptr<device::DeviceWorkspace> workspace, std::uint64_t address)
    : workspace_(std::move(workspace)), address_(address) {}

py::dict PyGpuMemory::interface() const {
    using namespace py::literals;  // NOLINT(google-build-using-namespace): that is what it is for
    return py::dict("shape"_a = py::make_tuple(bytes()), "typestr"_a = "|u1",
                    "data"_a = py::make_tuple(address_, false), "strides"_a = py::none(),
                    "version"_a = 3);
}

py::tuple PyGpuMemory::dlpack_device() const {
    return py::make_tuple(static_cast<int>(dlpack::DeviceType::kCuda), workspace_->device());
}

py::capsule PyGpuMemory::tensor() const {
    auto exported = std::make_unique<Exported>(*this, workspace_->device());
    return py::capsule(&exported.release()->managed, kUnused, drop_unused);
}

std::string PyGpuMemory::described() const {
    return concat("<pccl.GpuMemory: ", bytes(),
                  " bytes, accessible from cuda:", workspace_->device(), ">");
}

PyGpuWorkspace::PyGpuWorkspace(comm::CommunicatorImpl& communicator, std::string name,
                               std::size_t bytes, const std::string& device,
                               std::optional<double> timeout)
    : name_(std::move(name)), bytes_(bytes), rank_(communicator.rank()), device_(0) {
    const Result<int> gpu = gpu_named(device);
    device_ = gpu.is_ok() ? *gpu : 0;
    const auto limit = timeout_of(timeout);
    workspace_ = value_or_throw([&]() -> Result<std::shared_ptr<device::DeviceWorkspace>> {
        const extension::ReleasedGil released;
        PCCL_ASSIGN_OR_RETURN(auto store,
                              communicator.agree_on_allocation(name_, bytes_, gpu.status(), limit));
        return device::create_interruptibly({.rank = rank_,
                                             .size = communicator.size(),
                                             .store = std::move(store),
                                             .device = device_,
                                             .bytes = bytes_,
                                             .timeout = limit.value_or(communicator.timeout())},
                                            extension::check_signals);
    }());
}

std::string PyGpuWorkspace::device() const { return concat(kCuda, ":", device_); }

PyGpuMemory PyGpuWorkspace::peer(Rank rank) const {
    if (workspace_ == nullptr)
        throw_status(Status::invalid_argument(
            concat("workspace \"", name_, "\" was released; allocate it again")));
    return {workspace_, value_or_throw(workspace_->address(rank))};
}

std::string PyGpuWorkspace::described() const {
    return concat("<pccl.GpuWorkspace \"", name_, "\" on ", device(), ": ", bytes_, " bytes a rank",
                  workspace_ == nullptr ? ", released>" : ">");
}

}  // namespace pccl::bindings
