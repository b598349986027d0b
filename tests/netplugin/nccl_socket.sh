#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds NCCL's own socket transport as a plug-in, to be measured beside PCCL's:
#
#     tests/netplugin/nccl_socket.sh SOURCE_FOLDER LIBRARY
#
# SOURCE_FOLDER is a clone of NCCL (tried: 2.30.7), LIBRARY the file to write, outside this repository. Needs g++ and
# CUDA's headers (CUDA_HOME, default /usr/local/cuda).
set -euo pipefail
[ $# = 2 ] || { sed -n '4,9s/^# \?//p' "$0"; exit 2; }
source_folder=$(realpath "$1")
library=$(realpath -m "$2")
here=$(dirname "$(realpath "$0")")
cuda=${CUDA_HOME:-/usr/local/cuda}
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT

number() { sed -n "s/^NCCL_$1 *:= *//p" "$source_folder/makefiles/version.mk"; }
major=$(number MAJOR) minor=$(number MINOR) patch=$(number PATCH)
sed -e "s/\${nccl:Major}/$major/g; s/\${nccl:Minor}/$minor/g; s/\${nccl:Patch}/$patch/g; s/\${nccl:Suffix}//g" \
    -e "s/\${nccl:Version}/$((major * 10000 + minor * 100 + patch))/g" \
    "$source_folder/src/nccl.h.in" >"$objects/nccl.h"
flags=(-std=c++17 -O3 -fPIC -w -DNCCL_OS_LINUX -DNVTX_NO_IMPL "-I$objects" "-I$source_folder/src/include"
    "-I$source_folder/src/include/plugin" "-I$cuda/include" "-I$cuda/include/cccl")
for file in src/transport/net_socket.cc src/misc/socket.cc src/misc/param.cc src/misc/utils.cc src/os/linux.cc; do
    g++ "${flags[@]}" -c "$source_folder/$file" -o "$objects/$(basename "$file" .cc).o"
done
g++ "${flags[@]}" -c "$here/nccl_socket_shim.cc" -o "$objects/shim.o"
# Nothing of what the library exports, or takes, mixes with a real NCCL.
g++ -shared -Wl,-Bsymbolic -Wl,-z,defs -Wl,--defsym=ncclNetPlugin_v12=ncclNetSocket "$objects"/*.o -o "$library" -lpthread -ldl
echo "$library: the socket transport of NCCL $major.$minor.$patch"
