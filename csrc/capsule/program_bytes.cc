// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/program_bytes.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "csrc/capsule/limits.h"

namespace pccl::capsule {
namespace {

using schedule::Action;
using schedule::Buffer;
using schedule::Dependency;
using schedule::Lane;
using schedule::PeerPort;
using schedule::Program;
using schedule::Schedule;
using schedule::Shape;
using schedule::Slice;
using schedule::Slices;
using schedule::Step;
using schedule::Symmetry;

constexpr std::uint64_t kActions = 16;
constexpr std::uint64_t kBuffers = 4;
// Bits for the fields of a step.
constexpr std::uint64_t kSrc = 1;
constexpr std::uint64_t kDst = 2;
constexpr std::uint64_t kFrom = 4;
constexpr std::uint64_t kTo = 8;
constexpr std::uint64_t kAfter = 16;
constexpr std::uint64_t kAllFields = 31;

std::uint64_t field_if(bool is_there, std::uint64_t field) { return is_there ? field : 0; }

class ProgramWriter {
   public:
    void program(const Program& program) {
        number(program.scratch_chunks);
        number(program.lanes.size());
        for (const Lane& lane : program.lanes) {
            number(lane.size());
            for (const Step& step : lane) this->step(step);
        }
    }
    template <typename Integer>
    void number(Integer value) {
        auto left = static_cast<std::uint64_t>(value);
        for (; left >= 0x80; left >>= 7U) bytes_ += static_cast<char>(left | 0x80U);
        bytes_ += static_cast<char>(left);
    }
    [[nodiscard]] std::string take() { return std::move(bytes_); }

   private:
    void step(const Step& step) {
        const std::uint64_t fields =
            field_if(!step.src.is_empty(), kSrc) | field_if(!step.dst.is_empty(), kDst) |
            field_if(step.from.is_used(), kFrom) | field_if(step.to.is_used(), kTo) |
            field_if(!step.after.empty(), kAfter);
        number(static_cast<std::uint64_t>(step.action) + kActions * fields);
        if (!step.src.is_empty()) slices(step.src);
        if (!step.dst.is_empty()) slices(step.dst);
        if (step.from.is_used()) port(step.from);
        if (step.to.is_used()) port(step.to);
        if (!step.after.empty()) dependencies(step.after);
    }
    void slices(const Slices& slices) {
        number(slices.size());
        for (const Slice& slice : slices) {
            number(static_cast<std::uint64_t>(slice.buffer) +
                   kBuffers * static_cast<std::uint64_t>(slice.offset));
            number(slice.count);
        }
    }
    void port(const PeerPort& port) {
        number(port.peer);
        number(port.channel);
    }
    void dependencies(const std::vector<Dependency>& after) {
        number(after.size());
        for (const Dependency& each : after) {
            number(each.lane);
            number(each.step);
        }
    }

    std::string bytes_;
};

/// Reader of programs, each of which represents `copies` ranks.
class ProgramReader {
   public:
    explicit ProgramReader(std::string_view bytes) : bytes_(bytes) {}

    /// Sets the number of ranks that each program represents; limits count parts of all ranks.
    void stand_for(int copies) { copies_ = copies; }

    Result<Program> program() {
        Program program;
        PCCL_TRY(number(program.scratch_chunks));
        std::size_t lanes = 0;
        PCCL_TRY(parts("lanes", lanes));
        program.lanes.resize(lanes);
        for (Lane& lane : program.lanes) PCCL_TRY(read(lane));
        return program;
    }

    Status number(int& value) {
        std::uint64_t raw = 0;
        PCCL_TRY(number(raw));
        if (raw > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
            return refuse("a number is too large before byte ", at_);
        value = static_cast<int>(raw);
        return Status::ok();
    }
    [[nodiscard]] Status finish() const {
        if (at_ == bytes_.size()) return Status::ok();
        return refuse(bytes_.size() - at_, " bytes follow the programs at byte ", at_);
    }

   private:
    Status number(std::uint64_t& value) {
        constexpr unsigned kMostBits = 35;
        value = 0;
        for (unsigned shift = 0; shift < kMostBits; shift += 7) {
            if (at_ == bytes_.size()) return refuse("truncated at byte ", at_);
            const auto byte = static_cast<unsigned char>(bytes_[at_++]);
            value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
            if (byte < 0x80U) return Status::ok();
        }
        return refuse("a number does not end before byte ", at_);
    }

    /// Reads the count of parts, each of which takes at least one byte.
    Status parts(std::string_view what, std::size_t& count) {
        int given = 0;
        PCCL_TRY(number(given));
        if (std::cmp_greater(given, bytes_.size() - at_))
            return refuse(given, " ", what, " at byte ", at_, ", where ", bytes_.size() - at_,
                          " bytes are left");
        parts_ += static_cast<long long>(given) * copies_;
        if (parts_ > kMostParts)
            return refuse("more than ", kMostParts, " lanes, steps and slices at byte ", at_);
        count = static_cast<std::size_t>(given);
        return Status::ok();
    }

    Status read(Lane& lane) {
        std::size_t steps = 0;
        PCCL_TRY(parts("steps", steps));
        lane.resize(steps);
        for (Step& step : lane) PCCL_TRY(read(step));
        return Status::ok();
    }

    Status read(Step& step) {
        std::uint64_t head = 0;
        PCCL_TRY(number(head));
        const std::uint64_t fields = head / kActions;
        if (fields > kAllFields ||
            head % kActions > static_cast<std::uint64_t>(Action::kSwitchPhase))
            return refuse("there is no action ", head, ", before byte ", at_);
        step.action = static_cast<Action>(head % kActions);
        if ((fields & kSrc) != 0) PCCL_TRY(read(step.src));
        if ((fields & kDst) != 0) PCCL_TRY(read(step.dst));
        if ((fields & kFrom) != 0) PCCL_TRY(read(step.from));
        if ((fields & kTo) != 0) PCCL_TRY(read(step.to));
        return (fields & kAfter) != 0 ? read(step.after) : Status::ok();
    }

    Status read(Slices& slices) {
        std::size_t count = 0;
        PCCL_TRY(parts("slices", count));
        for (std::size_t i = 0; i < count; ++i) {
            std::uint64_t place = 0;
            Slice slice;
            PCCL_TRY(number(place));
            PCCL_TRY(number(slice.count));
            if (place % kBuffers > static_cast<std::uint64_t>(Buffer::kScratch) ||
                place / kBuffers > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
                return refuse("a slice names no buffer before byte ", at_);
            slice.buffer = static_cast<Buffer>(place % kBuffers);
            slice.offset = static_cast<int>(place / kBuffers);
            slices.add(slice);
        }
        return Status::ok();
    }

    Status read(PeerPort& port) {
        PCCL_TRY(number(port.peer));
        // The rotation would map it to another rank, or to an invalid number.
        if (copies_ > 1 && port.peer >= copies_)
            return refuse("peer ", port.peer, " is no rank before byte ", at_, "; ranks are 0 to ",
                          copies_ - 1);
        return number(port.channel);
    }

    Status read(std::vector<Dependency>& after) {
        std::size_t count = 0;
        PCCL_TRY(parts("dependencies", count));
        after.resize(count);
        for (Dependency& each : after) {
            PCCL_TRY(number(each.lane));
            PCCL_TRY(number(each.step));
        }
        return Status::ok();
    }

    std::string_view bytes_;
    std::size_t at_ = 0;
    long long parts_ = 0;
    int copies_ = 1;
};

}  // namespace

std::string program_bytes(const Schedule& schedule, Symmetry symmetry) {
    ProgramWriter out;
    out.number(static_cast<int>(symmetry));
    if (symmetry != Symmetry::kNone) {
        out.program(schedule.programs.front());
        return out.take();
    }
    for (const Program& program : schedule.programs) out.program(program);
    return out.take();
}

Result<std::vector<Program>> parse_programs(std::string_view bytes, const Shape& shape) {
    ProgramReader in(bytes);
    int kind = 0;
    PCCL_TRY(in.number(kind));
    if (kind > static_cast<int>(Symmetry::kRotatedChunks))
        return refuse("there is no symmetry ", kind, " of programs");
    const auto symmetry = static_cast<Symmetry>(kind);
    if (symmetry == Symmetry::kNone) {
        std::vector<Program> programs;
        for (Rank rank = 0; rank < shape.ranks; ++rank) {
            PCCL_ASSIGN_OR_RETURN(Program program, in.program());
            programs.push_back(std::move(program));
        }
        PCCL_TRY(in.finish());
        return programs;
    }
    if (symmetry == Symmetry::kRotatedChunks && shape.chunks % shape.ranks != 0)
        return refuse(shape.chunks, " chunks do not rotate over ", shape.ranks, " ranks");
    in.stand_for(shape.ranks);
    PCCL_ASSIGN_OR_RETURN(const Program first, in.program());
    PCCL_TRY(in.finish());
    return rotations(first, shape, symmetry);
}

}  // namespace pccl::capsule
