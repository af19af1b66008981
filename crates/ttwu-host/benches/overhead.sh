#!/bin/bash
# What recording costs: `perf bench sched messaging` alone, under `perf sched record`, and under ttwu's recorder, in turn.
#
# Interleaved, because whatever else the machine does drifts: medians of runs that alternate are comparable, two blocks of runs
# are not. CPU time is printed beside wall time, because on a shared machine only that is the benchmark's own: `bench` is the
# benchmark's CPU time (tracepoints run in its context), `all` adds the recorder's. Not a test: it prints, it does not judge.
# Needs root and perf.
#
# On a machine that others use too, PIPE=LOOPS takes `perf bench sched pipe` on one CPU under SCHED_FIFO instead: nothing but
# switches and wake-ups, the worst case for a recorder, and what others do is not in the figures.
#
# usage: [PIPE=60000] overhead.sh [ROUNDS] [GROUPS] [LOOPS] [ttwu options…]
set -eu
rounds=${1:-9} groups=${2:-4} loops=${3:-500}
shift $(($# < 3 ? $# : 3))
cd "$(dirname "$0")/../../.."
cargo build --release -q -j1 -p ttwu-host --example record
ttwu=${CARGO_TARGET_DIR:-target}/release/examples/record
what="messaging -g $groups -l $loops"
if [ "${PIPE:-}" ]; then what="pipe -l $PIPE"; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/bench" <<END
TIMEFORMAT='%R %U %S'
{ time ${PIPE:+taskset -c 0} perf bench -f simple sched $what >/dev/null; } 2>"$work/inner"
END

# run NAME COMMAND…: one line `NAME wall bench-cpu all-cpu`
run() {
    local name=$1 TIMEFORMAT='%R %U %S'
    shift
    { time ${PIPE:+chrt -f 1} "$@" >"$work/log" 2>&1; } 2>"$work/outer"
    awk -v name="$name" 'NR == FNR { wall = $1; bench = $2 + $3; next } { print name, wall, bench, $2 + $3 }' \
        "$work/inner" "$work/outer"
    grep -q 'lost: 0,$' "$work/log" || case $name in ttwu-*) echo "# $name lost events" ;; esac
}

for _ in $(seq "$rounds"); do
    run alone bash "$work/bench"
    run perf perf sched record -o "$work/perf.data" bash "$work/bench"
    run ttwu-sched "$ttwu" -q --raw -o "$work/x" "$@" -- bash "$work/bench"
    run ttwu-minimal "$ttwu" -q --raw -o "$work/x" --events minimal "$@" -- bash "$work/bench"
    run ttwu-tracefs "$ttwu" -q --raw -o "$work/x" --backend tracefs "$@" -- bash "$work/bench"
done | tee "$work/all" | sed 's/^/# /'

echo "medians in s of $rounds runs each:"
printf '  %-14s %8s %8s %8s\n' recorder wall bench all
for name in alone perf ttwu-sched ttwu-minimal ttwu-tracefs; do
    printf '  %-14s' $name
    for column in 2 3 4; do
        printf ' %8.3f' "$(awk -v n=$name '$1 == n' "$work/all" | sort -nk$column,$column | awk -v c=$column '{ t[NR] = $c } END { print t[int((NR + 1) / 2)] }')"
    done
    echo
done
