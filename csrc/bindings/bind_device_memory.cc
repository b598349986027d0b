// SPDX-License-Identifier: Apache-2.0

// Bindings of DeviceMemory: buffers on a GPU for programs without another GPU library.

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "csrc/bindings/bind.h"
#include "csrc/bindings/buffer.h"
#include "csrc/bindings/errors.h"
#include "csrc/device/device_memory.h"
#include "csrc/extension/gil.h"

namespace pccl::bindings {

namespace py = pybind11;
using device::DeviceMemoryImpl;
using py::arg;

namespace {

std::unique_ptr<DeviceMemoryImpl> allocate(int device, std::size_t nbytes) {
    return released([&] { return DeviceMemoryImpl::allocate(device, nbytes); });
}

/// Returns the memory of `object` for reads or writes.
std::span<std::byte> memory_in(Buffers& buffers, const py::object& object, Access access) {
    const Block block = buffers.add(object.ptr(), access);
    return {block.data, block.count * size_of(buffers.type())};
}

void without_gil(Status (*work)(DeviceMemoryImpl&, std::span<std::byte>), DeviceMemoryImpl& self,
                 std::span<std::byte> host) {
    Status status;
    {
        const extension::ReleasedGil release;
        status = work(self, host);
    }
    throw_unless_ok(status);
}

void write_from(DeviceMemoryImpl& self, const py::object& from) {
    Buffers buffers;
    without_gil(
        [](DeviceMemoryImpl& memory, std::span<std::byte> host) { return memory.write(host); },
        self, memory_in(buffers, from, Access::kRead));
}

void read_into(DeviceMemoryImpl& self, const py::object& into) {
    Buffers buffers;
    without_gil(
        [](DeviceMemoryImpl& memory, std::span<std::byte> host) { return memory.read(host); }, self,
        memory_in(buffers, into, Access::kWrite));
}

void wait_for_device(DeviceMemoryImpl& self) {
    without_gil([](DeviceMemoryImpl& memory, std::span<std::byte>) { return memory.wait(); }, self,
                {});
}

}  // namespace

void bind_device_memory(extension::Module& module) {
    extension::Class<DeviceMemoryImpl>(module, "DeviceMemory")
        .def_init(&allocate, py::kw_only(), arg("device"), arg("nbytes"))
        .def_property_readonly("address", &DeviceMemoryImpl::address)
        .def_property_readonly("nbytes", &DeviceMemoryImpl::bytes)
        .def("write", &write_from, arg("source"))
        .def("read", &read_into, arg("target"))
        .def("wait", &wait_for_device);
}

}  // namespace pccl::bindings
