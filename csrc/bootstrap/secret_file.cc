#include "csrc/bootstrap/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/crypto/hmac.h"
#include "csrc/sys/private_file.h"

namespace pccl::bootstrap {
namespace {

constexpr std::size_t kShortest = 16;
constexpr std::size_t kLongest = 4 * kKiB;
constexpr sys::Forbidden kForbidden{.of_own = S_IRWXG | S_IRWXO, .of_root = S_IWGRP | S_IRWXO};

Result<std::vector<std::uint8_t>> read_up_to(std::size_t most, int fd) {
    std::vector<std::uint8_t> bytes(most);
    std::size_t got = 0;
    for (ssize_t more = 1; more != 0 && got < most; got += static_cast<std::size_t>(more)) {
        do more = ::read(fd, bytes.data() + got, most - got);
        while (more < 0 && errno == EINTR);
        if (more < 0) return Status::from_errno(errno, "cannot be read");
    }
    bytes.resize(got);
    return bytes;
}

}  // namespace

Result<transport::Secret> secret_from_file(const std::string& path,
                                           const transport::GroupId& group) {
    const std::string what = concat("the secret file ", path);
    const auto refuse = [&what](const auto&... why) {
        return Status::invalid_argument(concat(what, why...));
    };
    // A pipe of that name must not be waited for.
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.is_open()) return refuse(Status::from_errno(errno, "").message());
    PCCL_TRY(sys::check_private(file.get(), what, kForbidden));
    const auto key = read_up_to(kLongest + 1, file.get());
    if (!key.is_ok()) return refuse(" ", key.status().message());
    if (key->size() < kShortest || key->size() > kLongest)
        return refuse(" needs ", kShortest, " to ", kLongest, " bytes");
    return sys::hmac_sha256(*key, group);
}

}  // namespace pccl::bootstrap
