#include "csrc/device/gpu_sharing.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/abi/device_team.h"
#include "csrc/base/bytes.h"
#include "csrc/base/text.h"

namespace pccl::device {
namespace {

constexpr std::string_view kSubject = "seat";
constexpr std::uint32_t kMostProcessors = 1U << 16;  // far above any GPU's

std::string text_of(const GpuSeat& seat) {
    ByteWriter out;
    out.raw(seat.gpu);
    out.u8(seat.has_mps ? 1 : 0);
    out.u8(seat.takes_turns ? 1 : 0);
    out.u32(static_cast<std::uint32_t>(seat.multiprocessors));
    return out.take();
}

Result<GpuSeat> seat_in(std::string_view text) {
    ByteReader in(text);
    GpuSeat seat;
    PCCL_TRY(in.raw(seat.gpu));
    std::uint8_t flag = 0;
    PCCL_TRY(in.u8(flag));
    seat.has_mps = flag != 0;
    PCCL_TRY(in.u8(flag));
    seat.takes_turns = flag != 0;
    std::uint32_t multiprocessors = 0;
    PCCL_TRY(in.u32(multiprocessors));
    seat.multiprocessors =
        static_cast<int>(std::min<std::uint32_t>(multiprocessors, kMostProcessors));
    return seat;
}

}  // namespace

Status check_seats(std::span<const GpuSeat> seats) {
    if (std::ranges::any_of(seats, &GpuSeat::takes_turns)) return Status::ok();
    for (std::size_t one = 0; one < seats.size(); ++one) {
        for (std::size_t other = one + 1; other < seats.size(); ++other) {
            if (seats[one].gpu != seats[other].gpu) continue;
            if (seats[one].has_mps && seats[other].has_mps) continue;
            return Status::unsupported(concat(
                "ranks ", one, " and ", other,
                " share a GPU without MPS, where kernels take "
                "turns and each message would wait for time slices: start MPS before the "
                "ranks (nvidia-cuda-mps-control -d), give each rank a GPU of its own, or set "
                "PCCL_GPU_PEER_ACCESS=1 to wait"));
        }
    }
    return Status::ok();
}

int resident_blocks(std::span<const GpuSeat> seats) {
    int blocks = abi::kMostBlocks;
    for (const GpuSeat& seat : seats) {
        const auto ranks = static_cast<int>(std::ranges::count(seats, seat.gpu, &GpuSeat::gpu));
        if (ranks > 1) blocks = std::min(blocks, seat.multiprocessors / ranks);
    }
    return std::max(blocks, 1);
}

Result<int> agree_on_seats(const DeviceMeeting& meeting, const GpuSeat& own) {
    PCCL_TRY(meeting.say(kSubject, text_of(own)));
    std::vector<GpuSeat> seats;
    for (Rank rank = 0; rank < meeting.size(); ++rank) {
        PCCL_ASSIGN_OR_RETURN(const std::string said, meeting.hear(rank, kSubject));
        PCCL_ASSIGN_OR_RETURN(const GpuSeat seat, seat_in(said));
        seats.push_back(seat);
    }
    PCCL_TRY(check_seats(seats));
    return resident_blocks(seats);
}

}  // namespace pccl::device
