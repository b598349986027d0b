// Messages with tags, as pccl.p2p has them.

#include <pybind11/stl.h>

#include <memory>
#include <optional>

#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/p2p_waits.h"
#include "csrc/p2p/transfer.h"

namespace pccl::bindings {

namespace py = pybind11;
using p2p::LocalBlock;
using p2p::LocalMemory;
using p2p::Message;
using p2p::Transfer;
using py::arg;

namespace {

using PostMethod = Result<Message> (Transfer::*)(const LocalBlock&, std::uint64_t, Deadline);

template <PostMethod Post>
Message post_message(Transfer& transfer, const std::shared_ptr<LocalMemory>& memory,
                     std::uint64_t offset, std::uint64_t nbytes, std::uint64_t tag,
                     std::optional<double> timeout) {
    const LocalBlock block{memory, {offset, nbytes}};
    std::optional<Message> posted;
    const auto try_until = [&](Deadline deadline) {
        auto message = (transfer.*Post)(block, tag, deadline);
        if (message.is_ok()) posted = *message;
        return message.status();
    };
    wait_for_signals_too(timeout, try_until, &unless_timeout, transfer.peer());
    return *posted;
}

bool is_message_done(const Message& message) {
    if (!message.is_complete()) return false;
    throw_unless_ok(message.status(), message.peer().name);
    return true;
}

void wait_for_all(Transfer& transfer, std::optional<double> timeout) {
    wait_for_signals_too(
        timeout, [&](Deadline deadline) { return transfer.await_end(deadline); }, &unless_timeout,
        transfer.peer());
    throw_unless_ok(transfer.take_error(), transfer.peer());
}

}  // namespace

void bind_p2p_transfer(extension::Module& module) {
    extension::Class<Message>(module, "_P2pMessage")
        .def_property_readonly("nbytes",
                               [](const Message& self) {
                                   return self.is_complete() ? self.bytes() : std::uint64_t{0};
                               })
        .def_property_readonly("tag", &Message::tag)
        .def("done", &is_message_done)
        .def("wait", &wait_for_end<Message>, arg("timeout"))
        .def("release",
             [](const Message& self) {
                 const py::gil_scoped_release released;
                 self.release();
             })
        .def("__str__", &Message::to_string);
    extension::Class<Transfer>(module, "_P2pTransfer")
        .def("post_send", &post_message<&Transfer::post_send>, arg("memory"), arg("offset"),
             arg("nbytes"), arg("tag"), arg("timeout"))
        .def("post_recv", &post_message<&Transfer::post_recv>, arg("memory"), arg("offset"),
             arg("nbytes"), arg("tag"), arg("timeout"))
        .def("is_complete", &Transfer::is_complete)
        .def("wait", &wait_for_all, arg("timeout"))
        .def("release", [](Transfer& self) {
            const py::gil_scoped_release released;
            self.release();
        });
}

}  // namespace pccl::bindings
