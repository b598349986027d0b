// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/call.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bindings/errors.h"
#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/collective/collective.h"
#include "csrc/extension/gil.h"
#include "csrc/schedule/schedule.h"

namespace pccl::bindings {

namespace py = pybind11;
namespace {

/// Returns whether any byte belongs to two of the blocks, whose elements have `element_bytes`
/// bytes.
[[nodiscard]] inline bool share_memory(std::span<const Block> blocks, std::size_t element_bytes) {
    std::vector<Block> sorted(blocks.begin(), blocks.end());
    std::erase_if(sorted, [](const Block& block) { return block.count == 0; });
    std::ranges::sort(sorted, {}, &Block::data);
    const auto meets = [element_bytes](const Block& block, const Block& next) {
        return next.data < block.data + block.count * element_bytes;
    };
    return std::ranges::adjacent_find(sorted, meets) != sorted.end();
}

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

std::vector<Block>& kept(KeptBlocks::Side side) {
    thread_local std::array<std::vector<Block>, 2> kept;
    return kept.at(static_cast<std::size_t>(side));
}

}  // namespace

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

KeptBlocks::KeptBlocks(Side side) : side_(side), blocks_(std::move(kept(side))) { blocks_.clear(); }

KeptBlocks::~KeptBlocks() { kept(side_) = std::move(blocks_); }

void BufferCall::bind(const py::object& x, const py::object& out) {
    take(x, out);
    if (schedule::reduces(what_.kind)) buffers_.check_reducible();
    if (what_.reducing.factor && !buffers_.is_short()) premultiply();
    if (buffers_.is_short()) shorten_blocks();
}

void BufferCall::shorten_blocks() {
    for (std::vector<Block>* const side : {&*inputs_, &*outputs_})
        for (Block& block : *side) block = {buffers_.make_unit(), 1};
}

void BufferCall::premultiply() {
    const DataType type = buffers_.type();
    Status status;
    {
        const extension::ReleasedGil released;
        for (Block& input : *inputs_) {
            std::byte* const product = buffers_.make(input.count * size_of(type));
            if (buffers_.is_short()) break;
            status = arithmetic::premultiply(type, product, input.data, input.count,
                                             *what_.reducing.factor);
            if (!status.is_ok()) break;
            input.data = product;
        }
    }
    throw_unless_ok(status);
}

void BufferCall::take(const py::object& x, const py::object& out) {
    const bool is_root = rank_ == what_.root;
    switch (what_.kind) {
        case CollectiveKind::kAllReduce:
            if (out.is_none()) return read_and_write(x);
            read(x);
            return write(out);
        case CollectiveKind::kBroadcast:
            refuse_out(out);
            return is_root ? add_root_block(x) : write(x);
        case CollectiveKind::kReduce:
            refuse_out(out);
            return is_root ? read_and_write(x) : read(x);
        case CollectiveKind::kAllGather:
            read(x);
            return write_blocks(out);
        case CollectiveKind::kReduceScatter:
            read_blocks(x);
            return write(out);
        case CollectiveKind::kGather:
            read(x);
            if (is_root) write_blocks(out);
            return;
        case CollectiveKind::kScatter:
            if (is_root) read_blocks(x);
            return write(out);
        case CollectiveKind::kAllToAll:
            read_blocks(x);
            return write_blocks(out);
    }
}

void BufferCall::refuse_out(const py::object& out) const {
    if (out.is_none()) return;
    throw_status(Status::invalid_argument(concat(schedule::to_string(what_.kind),
                                                 " has one buffer, x, which gets the result: give ",
                                                 "no out")));
}

void BufferCall::read(const py::object& object) {
    (*inputs_).push_back(buffers_.add(object.ptr(), Access::kRead));
}

void BufferCall::write(const py::object& object) {
    (*outputs_).push_back(buffers_.add(object.ptr(), Access::kWrite));
}

void BufferCall::read_and_write(const py::object& object) {
    write(object);
    *inputs_ = *outputs_;
}

/// A broadcast's root does not write its output.
void BufferCall::add_root_block(const py::object& object) {
    read(object);
    *outputs_ = *inputs_;
}

void BufferCall::write_blocks(const py::object& object) {
    std::vector<Block>& blocks = *outputs_;
    add(blocks, object, Access::kWrite);
    const std::size_t element = size_of(buffers_.type());
    if (!has_lists_ || buffers_.is_short() || !share_memory(blocks, element)) return;
    buffers_.refuse(Status::invalid_argument(
        "buffers of out share memory; give arrays that have memory of their own"));
    for (Block& block : blocks) block.data = buffers_.make(block.count * element);
}

void BufferCall::add(std::vector<Block>& blocks, const py::object& object, Access access) {
    if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
        has_lists_ = true;
        for (const py::handle item : object) blocks.push_back(buffers_.add(item.ptr(), access));
        return;
    }
    cut(blocks, buffers_.add(object.ptr(), access));
}

void BufferCall::cut(std::vector<Block>& blocks, Block whole) const {
    const auto parts = static_cast<std::size_t>(size_);
    if (whole.count % parts != 0) {
        throw_status(Status::invalid_argument(concat("a buffer of ", whole.count,
                                                     " elements cannot hold equal blocks for ",
                                                     size_, " ranks")));
    }
    const std::size_t count = whole.count / parts;
    for (std::size_t i = 0; i < parts; ++i) {
        blocks.push_back({whole.data + i * count * size_of(buffers_.type()), count});
    }
}

Collective BufferCall::collective(std::string_view algorithm) const {
    return {.kind = what_.kind,
            .type = buffers_.type(),
            .op = what_.reducing.op,
            .root = what_.root,
            .inputs = *inputs_,
            .outputs = *outputs_,
            .is_even = may_be_even(what_.kind) && !has_lists_,
            .is_refused = !why_refused().is_ok(),
            .algorithm = algorithm};
}

}  // namespace pccl::bindings
