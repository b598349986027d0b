// What pccl.Capsule stands on: programs of collectives in files.

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/named_results.h"
#include "csrc/bindings/names.h"
#include "csrc/bindings/raw_steps.h"
#include "csrc/capsule/capsule.h"
#include "csrc/capsule/file_content.h"
#include "csrc/capsule/msccl/export.h"
#include "csrc/capsule/msccl/import.h"
#include "csrc/capsule/mscclpp/import.h"
#include "csrc/capsule/sizes.h"
#include "csrc/comm/selection/imagined_group.h"
#include "csrc/comm/selection/selector.h"
#include "csrc/schedule/generators/generators.h"

namespace pccl::bindings {

namespace py = pybind11;
using capsule::Capsule;
using py::arg;

namespace {

schedule::Schedule schedule_of(const std::string& name, const std::string& collective, int ranks,
                               Rank root, int chunks, int slots, const py::list& programs,
                               std::vector<std::string> phases) {
    return {.name = name,
            .shape = {.kind = kind_of(collective),
                      .ranks = ranks,
                      .root = root,
                      .chunks = chunks,
                      .slots = slots},
            .programs = programs_of(programs),
            .phases = std::move(phases)};
}

/// None where `name` is empty.
Result<std::optional<schedule::MessageProtocol>> protocol_called(const std::string& name) {
    const auto protocol = schedule::message_protocol_named(name);
    if (protocol || name.empty()) return protocol;
    return Status::invalid_argument(concat("'", name, "' is no protocol of messages; there are ",
                                           schedule::names_of_message_protocols()));
}

Capsule make_capsule(const schedule::Schedule& schedule, const std::string& author,
                     const std::string& licence, const std::string& note, const std::string& sizes,
                     const std::string& protocol) {
    return released([&]() -> Result<Capsule> {
        capsule::Description description{
            .name = schedule.name, .author = author, .licence = licence, .note = note};
        PCCL_ASSIGN_OR_RETURN(description.sizes, capsule::parse_sizes(sizes));
        PCCL_ASSIGN_OR_RETURN(description.protocol, protocol_called(protocol));
        return Capsule::make(description, schedule);
    });
}

Capsule parse_capsule(const py::bytes& data) {
    const std::string bytes = data;
    return released([&] { return Capsule::parse(bytes); });
}

Capsule read_capsule(const std::string& path) {
    return released([&] { return Capsule::read(path); });
}

/// Rounds, messages, bytes sent and bytes added up of the rank with the most.
std::tuple<long long, long long, double, double> cost(const Capsule& self, std::size_t nbytes) {
    const schedule::Shape& shape = self.schedule().shape;
    const auto block = comm::block_bytes(shape.kind, nbytes, shape.ranks);
    const schedule::Cost cost = self.source()->cost(shape, static_cast<double>(block));
    return {cost.rounds, cost.messages, cost.bytes_sent, cost.bytes_reduced};
}

/// The ways of a job that has loaded it, and what they count on.
std::pair<std::vector<Prediction>, py::object> predict(const Capsule& self,
                                                       const topo::JobTopology& job,
                                                       std::size_t nbytes) {
    const auto choice = released([&]() -> Result<comm::ImaginedChoice> {
        if (self.switches_phases())
            return Status::unsupported(
                "no group chooses a capsule that switches phases: replay() plays it through");
        auto catalogue = std::make_shared<schedule::Catalogue>(*schedule::built_in());
        PCCL_TRY(catalogue->add(self.source(schedule::SizeRange{})));
        return comm::explain(job, self.schedule().shape.kind, nbytes, std::move(catalogue));
    });
    return {choice.ways, to_python(choice.counted_on)};
}

std::optional<std::string> signer(const Capsule& self) {
    return self.seal() ? std::optional(capsule::to_hex(self.seal()->signer)) : std::nullopt;
}

Capsule signed_with(const Capsule& self, const std::string& pem) {
    return self.signed_with(value_or_throw(sys::secret_key_in(pem)));
}

void check_signer(const Capsule& self, const std::string& keys) {
    throw_unless_ok(value_or_throw(capsule::TrustedKeys::read(keys)).check(self.seal()));
}

// Programs as they are given: steps, and files of others.
void bind_programs(extension::Module& module) {
    module.def("schedule_of", &schedule_of, arg("name"), arg("collective"), arg("ranks"),
               arg("root"), arg("chunks"), arg("slots"), arg("programs"),
               arg("phases") = std::vector<std::string>());
    module.def("programs_of", &raw_programs_of, arg("schedule"));
    module.def(
        "import_msccl",
        [](const std::string& xml, const std::string& file, const std::string& name) {
            return released([&] { return capsule::import_msccl(xml, file, name); });
        },
        arg("xml"), arg("file"), arg("name"));
    module.def(
        "import_mscclpp",
        [](const std::string& json, const std::string& file, const std::string& name) {
            return released([&] { return capsule::import_mscclpp(json, file, name); });
        },
        arg("json"), arg("file"), arg("name"));
    module.def(
        "unproven_schedule",
        [](const py::bytes& data) {
            return value_or_throw(capsule::unproven_schedule(std::string(data)));
        },
        arg("data"));
    module.def(
        "unproven_msccl",
        [](const std::string& xml, const std::string& file) {
            return value_or_throw(capsule::unproven_msccl(xml, file));
        },
        arg("xml"), arg("file"));
    module.def(
        "unproven_mscclpp",
        [](const std::string& json, const std::string& file) {
            return value_or_throw(capsule::unproven_mscclpp(json, file));
        },
        arg("json"), arg("file"));
    module.def(
        "export_msccl",
        [](const Capsule& capsule) { return released([&] { return export_msccl(capsule); }); },
        arg("capsule"));
    module.def(
        "check_sizes",
        [](const std::string& sizes) {
            return capsule::to_text(value_or_throw(capsule::parse_sizes(sizes)));
        },
        arg("sizes"));
}

}  // namespace

void bind_capsule(extension::Module& module) {
    bind_programs(module);
    extension::Class<Capsule> cls(module, "Capsule");
    cls.def_static("make", &make_capsule, arg("schedule"), py::kw_only(), arg("author"),
                   arg("licence"), arg("note"), arg("sizes"), arg("protocol"));
    cls.def_property_readonly("protocol", [](const Capsule& self) {
        const auto& protocol = self.description().protocol;
        return protocol ? std::string(schedule::to_string(*protocol)) : std::string();
    });
    cls.def_static("parse", &parse_capsule, arg("data"));
    cls.def_static("read", &read_capsule, arg("path"));
    cls.def_property_readonly("digest",
                              [](const Capsule& self) { return sys::to_hex(self.digest()); });
    cls.def_property_readonly("manifest", [](const Capsule& self) {
        return py::module_::import("json").attr("loads")(self.manifest());
    });
    cls.def_property_readonly("schedule", [](const Capsule& self) { return self.schedule(); });
    cls.def_property_readonly("data",
                              [](const Capsule& self) { return py::bytes(self.signed_bytes()); });
    cls.def_property_readonly("signer", &signer);
    cls.def("signed_with", &signed_with, arg("pem"));
    cls.def("check_signer", &check_signer, arg("keys"));
    cls.def("cost", &cost, arg("nbytes"));
    cls.def("predict", &predict, arg("job"), arg("nbytes"));
}

}  // namespace pccl::bindings
