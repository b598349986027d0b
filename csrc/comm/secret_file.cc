#include "csrc/comm/secret_file.h"

#include <cstdint>
#include <fstream>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/sys/crypto/hmac.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kShortest = 16;
constexpr std::size_t kLongest = 4 * kKiB;

}  // namespace

Result<transport::Secret> secret_from_file(const std::string& path,
                                           const transport::GroupId& group) {
    std::ifstream file(path, std::ios::binary);
    std::vector<std::uint8_t> key(kLongest + 1);
    file.read(reinterpret_cast<char*>(key.data()), static_cast<std::streamsize>(key.size()));
    if (!file.eof() && !file.good())
        return Status::invalid_argument(concat("cannot read the secret in ", path));
    key.resize(static_cast<std::size_t>(file.gcount()));
    if (key.size() < kShortest || key.size() > kLongest)
        return Status::invalid_argument(
            concat("the secret in ", path, " needs ", kShortest, " to ", kLongest, " bytes"));
    return sys::hmac_sha256(key, group);
}

}  // namespace pccl::comm
