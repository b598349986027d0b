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

namespace pccl::bindings {

namespace py = pybind11;
using device::DeviceMemory;
using py::arg;

namespace {

std::unique_ptr<DeviceMemory> allocate(int device, std::size_t nbytes) {
    return released([&] { return DeviceMemory::allocate(device, nbytes); });
}

/// Returns the memory of `object` for reads or writes.
std::span<std::byte> memory_in(Buffers& buffers, const py::object& object, Access access) {
    const Block block = buffers.add(object.ptr(), access);
    return {block.data, block.count * size_of(buffers.type())};
}

void without_gil(Status (*work)(DeviceMemory&, std::span<std::byte>), DeviceMemory& self,
                 std::span<std::byte> host) {
    Status status;
    {
        const py::gil_scoped_release release;
        status = work(self, host);
    }
    throw_unless_ok(status);
}

void write_from(DeviceMemory& self, const py::object& from) {
    Buffers buffers;
    without_gil([](DeviceMemory& memory, std::span<std::byte> host) { return memory.write(host); },
                self, memory_in(buffers, from, Access::kRead));
}

void read_into(DeviceMemory& self, const py::object& into) {
    Buffers buffers;
    without_gil([](DeviceMemory& memory, std::span<std::byte> host) { return memory.read(host); },
                self, memory_in(buffers, into, Access::kWrite));
}

void wait_for_device(DeviceMemory& self) {
    without_gil([](DeviceMemory& memory, std::span<std::byte>) { return memory.wait(); }, self, {});
}

}  // namespace

void bind_device_memory(extension::Module& module) {
    extension::Class<DeviceMemory>(module, "DeviceMemory")
        .def_init(&allocate, py::kw_only(), arg("device"), arg("nbytes"))
        .def_property_readonly("address", &DeviceMemory::address)
        .def_property_readonly("nbytes", &DeviceMemory::bytes)
        .def("write", &write_from, arg("source"))
        .def("read", &read_into, arg("target"))
        .def("wait", &wait_for_device);
}

}  // namespace pccl::bindings
