// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/secret_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "csrc/base/config.h"
#include "csrc/base/ids.h"
#include "csrc/base/open_error.h"
#include "csrc/base/text/text.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/crypto/sha256.h"
#include "csrc/sys/private_file.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::bootstrap {
namespace {

constexpr std::size_t kShortest = 16;
constexpr std::size_t kLongest = 4 * kKiB;
constexpr sys::Forbidden kForbidden{.of_own = S_IRWXG | S_IRWXO, .of_root = S_IWGRP | S_IRWXO};

}  // namespace

Result<transport::Secret> secret_from_file(const std::string& path,
                                           const transport::GroupId& group) {
    const std::string what = concat("the secret file ", path);
    const auto refuse = [&what](const auto&... why) {
        return Status::invalid_argument(concat(what, why...));
    };
    const UniqueFd file = open_to_read(path);
    if (!file.is_open()) return open_error(errno, what);
    PCCL_TRY(sys::check_private(file.get(), what, kForbidden));
    const auto key = sys::read_open(file.get(), kLongest + 1);
    if (!key.is_ok()) return refuse(" ", key.status().message());
    if (key->size() < kShortest || key->size() > kLongest)
        return refuse(" needs ", kShortest, " to ", kLongest, " bytes");
    return sys::hmac_sha256({reinterpret_cast<const std::uint8_t*>(key->data()), key->size()},
                            group);
}

Result<std::optional<transport::Secret>> job_secret(const transport::GroupId& group) {
    const std::string& file = process_config().secret_file;
    if (file.empty()) return std::optional<transport::Secret>();
    auto secret = secret_from_file(file, group);
    if (!secret.is_ok()) return secret.status().with_context("PCCL_SECRET_FILE");
    return std::optional(*secret);
}

}  // namespace pccl::bootstrap
