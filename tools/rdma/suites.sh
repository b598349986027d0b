#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Runs suites inside a machine: lines "name seconds command" of the file $1, whose folder is shared with the host and
# with the other machine. Writes name, exit status and seconds of each into results.NODE there.
list=$1
machines=$2
shared=$(dirname "$list")

# Waits until the other machine has come as far, at most 60 s.
meet() {
    touch "$shared/met.$1.$NODE"
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        [ -e "$shared/met.$1.$((3 - NODE))" ] && return
        sleep 0.2
    done
}

while read -r name seconds command <&4; do
    [ "$machines" = 1 ] || meet "$name"
    echo "== $name"
    begun=${EPOCHREALTIME/./}
    timeout --kill-after 5 "$seconds" bash -c "$command"
    status=$?
    echo "$name $status $(((${EPOCHREALTIME/./} - begun) / 100000))" >>"$shared/results.$NODE"
    [ "$name" != gate ] || [ $status = 0 ] || exit 1
done 4<"$list"
