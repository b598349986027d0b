#include "csrc/bindings/py_communicator.h"

#include <pybind11/stl.h>

#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/bindings/errors.h"
#include "csrc/capsule/sizes.h"
#include "csrc/extension/signals.h"
#include "csrc/runtime/transports.h"

namespace pccl::bindings {

namespace py = pybind11;
namespace {

using std::chrono::milliseconds;

constexpr std::array<std::pair<std::string_view, ReduceOp>, 9> kOps{{
    {"sum", ReduceOp::kSum},
    {"avg", ReduceOp::kAvg},
    {"max", ReduceOp::kMax},
    {"min", ReduceOp::kMin},
    {"product", ReduceOp::kProduct},
    {"prod", ReduceOp::kProduct},
    {"band", ReduceOp::kBand},
    {"bor", ReduceOp::kBor},
    {"bxor", ReduceOp::kBxor},
}};

ReduceOp op_of(const py::str& name) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &length);
    if (text == nullptr) throw py::error_already_set();
    const std::string_view wanted(text, static_cast<std::size_t>(length));
    for (const auto& [known, op] : kOps) {
        if (known == wanted) return op;
    }
    throw_status(Status::invalid_argument(
        concat("'", wanted, "' is no reduction: sum, avg, product, min, max, band, bor, bxor")));
}

milliseconds milliseconds_of(double seconds) {
    return std::chrono::duration_cast<milliseconds>(std::chrono::duration<double>(seconds));
}

std::optional<milliseconds> timeout_of(std::optional<double> seconds) {
    if (!seconds) return std::nullopt;
    return milliseconds_of(*seconds);
}

transport::TransportFlags transports_of(const std::string& text) {
    return value_or_throw(runtime::transports_named(text));
}

/// What is not asynchronous is waited for on the caller's thread.
comm::MessageOptions message_options(DataType type, const CallOptions& options) {
    return {.timeout = timeout_of(options.timeout), .type = type, .is_awaited = !options.async_op};
}

std::span<std::byte> bytes_of(Block block, DataType type) {
    return {block.data, block.count * size_of(type)};
}

}  // namespace

namespace {

/// Blocks in memory that is kept from call to call. Reading arguments may run code of the user, and
/// so a call within a call: that has memory of its own.
class KeptBlocks {
   public:
    enum class Side : std::size_t { kInputs, kOutputs };

    explicit KeptBlocks(Side side) : side_(side), blocks_(std::move(kept(side))) {
        blocks_.clear();
    }
    ~KeptBlocks() { kept(side_) = std::move(blocks_); }
    KeptBlocks(const KeptBlocks&) = delete;
    KeptBlocks& operator=(const KeptBlocks&) = delete;

    std::vector<Block>& operator*() { return blocks_; }
    [[nodiscard]] const std::vector<Block>& operator*() const { return blocks_; }

   private:
    static std::vector<Block>& kept(Side side) {
        thread_local std::array<std::vector<Block>, 2> kept;
        return kept.at(static_cast<std::size_t>(side));
    }

    const Side side_;
    std::vector<Block> blocks_;
};

}  // namespace

// One collective while its arguments are read.
struct PyCommunicator::Call {
    CollectiveKind kind;
    int size;
    Rank root = 0;
    ReduceOp op = ReduceOp::kSum;
    Buffers buffers{};
    KeptBlocks inputs{KeptBlocks::Side::kInputs};
    KeptBlocks outputs{KeptBlocks::Side::kOutputs};

    void read(const py::object& object) {
        (*inputs).push_back(buffers.add(object.ptr(), Access::kRead));
    }
    void write(const py::object& object) {
        (*outputs).push_back(buffers.add(object.ptr(), Access::kWrite));
    }
    /// What is written is read, too.
    void read_what_is_written() { *inputs = *outputs; }
    void read_blocks(const py::object& object) { add_blocks(*inputs, object, Access::kRead); }
    void write_blocks(const py::object& object) { add_blocks(*outputs, object, Access::kWrite); }

    void add_blocks(std::vector<Block>& blocks, const py::object& object, Access access) {
        if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
            for (const py::handle item : object) blocks.push_back(buffers.add(item.ptr(), access));
            return;
        }
        cut(blocks, buffers.add(object.ptr(), access));
    }

    void cut(std::vector<Block>& blocks, Block whole) const {
        const auto parts = static_cast<std::size_t>(size);
        if (whole.count % parts != 0) {
            throw_status(Status::invalid_argument(concat("a buffer of ", whole.count,
                                                         " elements cannot hold equal blocks for ",
                                                         size, " ranks")));
        }
        const std::size_t count = whole.count / parts;
        for (std::size_t i = 0; i < parts; ++i) {
            blocks.push_back({whole.data + i * count * size_of(buffers.type()), count});
        }
    }

    [[nodiscard]] Collective collective(std::string_view algorithm) const {
        return {.kind = kind,
                .type = buffers.type(),
                .op = op,
                .root = root,
                .inputs = *inputs,
                .outputs = *outputs,
                .algorithm = algorithm};
    }
};

PyCommunicator::PyCommunicator(const GroupOptions& options)
    : store_(store_at(options.rendezvous, options.place, options.name,
                      Deadline::after(milliseconds_of(options.timeout)))) {
    comm::CommunicatorOptions wanted{.rank = options.place.rank,
                                     .size = options.place.world_size,
                                     .store = store_,
                                     .name = options.name,
                                     .timeout = milliseconds_of(options.timeout),
                                     .transports = transports_of(options.transports),
                                     .algorithm = options.algorithm,
                                     .runtime = nullptr,
                                     .global_ranks = {},
                                     .interrupted = extension::check_signals,
                                     .gpu = options.gpu};
    auto communicator = [&] {
        const py::gil_scoped_release released;
        return comm::Communicator::create(wanted);
    }();
    communicator_ = value_or_throw(std::move(communicator));
}

PyCommunicator::~PyCommunicator() {
    const py::gil_scoped_release released;
    communicator_.reset();
    store_.reset();
}

PyCommunicator::Outcome PyCommunicator::perform(Call& call, const CallOptions& options) {
    if (options.async_op) {
        const runtime::Event event = released([&] {
            return communicator_->submit(call.collective(options.algorithm),
                                         timeout_of(options.timeout));
        });
        return hand_out(event, std::move(call.buffers));
    }
    // What py::gil_scoped_release does besides takes as long as a small collective.
    PyThreadState* const state = PyEval_SaveThread();
    const Status status =
        communicator_->run(call.collective(options.algorithm), timeout_of(options.timeout));
    PyEval_RestoreThread(state);
    throw_unless_ok(status);
    discarded_->clear();
    return py::none();
}

PyCommunicator::Outcome PyCommunicator::hand_out(const runtime::Event& event, Buffers buffers) {
    auto held = hold_until_done(event, std::make_unique<Buffers>(std::move(buffers)), discarded_);
    discarded_->clear();
    return py::cast(std::make_unique<PyEvent>(event, std::move(held)));
}

template <typename Post>
PyCommunicator::Outcome PyCommunicator::exchange(Buffers buffers, const CallOptions& options,
                                                 Post post) {
    const runtime::Event event = released(post);
    if (options.async_op) return hand_out(event, std::move(buffers));
    const Status status = wait_for(event, std::nullopt);
    // A wait that was interrupted leaves the message on its way.
    if (!event.is_done())
        hold_until_done(event, std::make_unique<Buffers>(std::move(buffers)), discarded_);
    throw_unless_ok(status);
    discarded_->clear();
    return py::none();
}

PyCommunicator::Outcome PyCommunicator::all_reduce(const py::object& x, const py::str& op,
                                                   const CallOptions& options) {
    Call call{.kind = CollectiveKind::kAllReduce, .size = communicator_->size(), .op = op_of(op)};
    call.write(x);
    call.read_what_is_written();
    call.buffers.check_reducible();
    return perform(call, options);
}

PyCommunicator::Outcome PyCommunicator::broadcast(const py::object& x, Rank root,
                                                  const CallOptions& options) {
    Call call{.kind = CollectiveKind::kBroadcast, .size = communicator_->size(), .root = root};
    call.write(x);
    if (communicator_->rank() == root) call.read_what_is_written();
    return perform(call, options);
}

PyCommunicator::Outcome PyCommunicator::reduce(const py::object& x, Rank root, const py::str& op,
                                               const CallOptions& options) {
    Call call{.kind = CollectiveKind::kReduce,
              .size = communicator_->size(),
              .root = root,
              .op = op_of(op)};
    if (communicator_->rank() == root) {
        call.write(x);
        call.read_what_is_written();
    } else {
        call.read(x);
    }
    call.buffers.check_reducible();
    return perform(call, options);
}

PyCommunicator::Outcome PyCommunicator::all_gather(const py::object& out, const py::object& x,
                                                   const CallOptions& options) {
    Call call{.kind = CollectiveKind::kAllGather, .size = communicator_->size()};
    call.read(x);
    call.write_blocks(out);
    return perform(call, options);
}

PyCommunicator::Outcome PyCommunicator::reduce_scatter(const py::object& out, const py::object& x,
                                                       const py::str& op,
                                                       const CallOptions& options) {
    Call call{
        .kind = CollectiveKind::kReduceScatter, .size = communicator_->size(), .op = op_of(op)};
    call.read_blocks(x);
    call.write(out);
    call.buffers.check_reducible();
    return perform(call, options);
}

PyCommunicator::Outcome PyCommunicator::gather(const py::object& out, const py::object& x,
                                               Rank root, const CallOptions& options) {
    Call call{.kind = CollectiveKind::kGather, .size = communicator_->size(), .root = root};
    call.read(x);
    if (communicator_->rank() == root) call.write_blocks(out);
    return perform(call, options);
}

PyCommunicator::Outcome PyCommunicator::scatter(const py::object& out, const py::object& x,
                                                Rank root, const CallOptions& options) {
    Call call{.kind = CollectiveKind::kScatter, .size = communicator_->size(), .root = root};
    if (communicator_->rank() == root) call.read_blocks(x);
    call.write(out);
    return perform(call, options);
}

PyCommunicator::Outcome PyCommunicator::all_to_all(const py::object& out, const py::object& x,
                                                   const CallOptions& options) {
    Call call{.kind = CollectiveKind::kAllToAll, .size = communicator_->size()};
    call.read_blocks(x);
    call.write_blocks(out);
    return perform(call, options);
}

PyCommunicator::Outcome PyCommunicator::send(const py::object& x, Rank peer, int tag,
                                             const CallOptions& options) {
    Buffers buffers;
    const Block block = buffers.add(x.ptr(), Access::kRead);
    const DataType type = buffers.type();
    const auto bytes = bytes_of(block, type);
    return exchange(std::move(buffers), options, [&] {
        return communicator_->send(peer, tag, bytes, message_options(type, options));
    });
}

PyCommunicator::Outcome PyCommunicator::receive(const py::object& x, Rank peer, int tag,
                                                const CallOptions& options) {
    Buffers buffers;
    const Block block = buffers.add(x.ptr(), Access::kWrite);
    const DataType type = buffers.type();
    const auto bytes = bytes_of(block, type);
    return exchange(std::move(buffers), options, [&] {
        return communicator_->receive(peer, tag, bytes, message_options(type, options));
    });
}

void PyCommunicator::barrier(std::optional<double> timeout) {
    Status status;
    {
        const py::gil_scoped_release released;
        status = communicator_->barrier(timeout_of(timeout));
    }
    throw_unless_ok(status);
}

py::object PyCommunicator::health(double timeout) const {
    const auto peers = released([&] { return communicator_->survey(milliseconds_of(timeout)); });
    const py::object make = py::module_::import("pccl.peer_health").attr("PeerHealth");
    py::list all;
    for (const comm::PeerHealth& peer : peers) {
        const py::object last =
            peer.last_sign
                ? py::object(py::float_(std::chrono::duration<double>(*peer.last_sign).count()))
                : py::none();
        all.append(make(peer.rank, std::string(to_string(peer.state)), peer.detail, last,
                        peer.situation.sequence, peer.situation.operation,
                        py::tuple(py::cast(peer.situation.awaited)), peer.situation.gpu_operation,
                        py::tuple(py::cast(peer.situation.gpu_awaited))));
    }
    return py::module_::import("pccl.table").attr("Table")(all);
}

std::unique_ptr<PyCommunicator> PyCommunicator::shrink(
    const std::optional<std::vector<Rank>>& excluded, std::optional<int> least) {
    auto shrunk = [&]() -> Result<std::shared_ptr<comm::Communicator>> {
        const py::gil_scoped_release released;
        const comm::ShrinkOptions wanted{.least = least};
        if (!excluded) return communicator_->shrink(wanted);
        if (excluded->empty()) return Status::invalid_argument("name the ranks to leave out");
        communicator_->abort(Status::aborted("this communicator is being shrunk"));
        return communicator_->shrink(*excluded, wanted);
    }();
    return std::unique_ptr<PyCommunicator>(
        new PyCommunicator(store_, value_or_throw(std::move(shrunk))));
}

std::unique_ptr<PyCommunicator> PyCommunicator::split(std::optional<int> color, int key,
                                                      std::optional<double> timeout) {
    auto part = released([&] { return communicator_->split(color, key, timeout_of(timeout)); });
    if (part == nullptr) return nullptr;
    return std::unique_ptr<PyCommunicator>(new PyCommunicator(store_, std::move(part)));
}

schedule::Schedule PyCommunicator::load(const py::object& capsule,
                                        const std::optional<std::string>& sizes,
                                        std::optional<double> timeout) {
    const py::object core = py::getattr(capsule, "_core", capsule);
    const bool is_path = !py::isinstance<capsule::Capsule>(core);
    const auto path =
        is_path ? py::str(py::module_::import("os").attr("fspath")(capsule)).cast<std::string>()
                : std::string();
    std::optional<Result<capsule::Capsule>> read;
    if (!is_path) read = core.cast<capsule::Capsule>();
    Status status;
    {
        const py::gil_scoped_release released;
        if (!read) read = capsule::Capsule::read(path);
        status = communicator_->load(*read, sizes, timeout_of(timeout));
    }
    throw_unless_ok(status);
    return read->value().schedule();
}

void PyCommunicator::unload(const std::string& name, std::optional<double> timeout) {
    Status status;
    {
        const py::gil_scoped_release released;
        status = communicator_->unload(name, timeout_of(timeout));
    }
    throw_unless_ok(status);
}

py::object PyCommunicator::loaded() const {
    const py::object make = py::module_::import("pccl.capsule_results").attr("LoadedCapsule");
    py::list all;
    for (const schedule::SourcePtr& source : communicator_->loaded())
        all.append(make(source->name, to_string(source->kind), capsule::to_text(*source->sizes)));
    return py::module_::import("pccl.table").attr("Table")(all);
}

}  // namespace pccl::bindings
