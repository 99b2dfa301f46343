#!/bin/bash
# Shows that the loom models bite: takes one fence, swap or rule at a time out of a copy of the
# crate and expects the named models to fail. Prints a table; exits 1 if a mutant survives.
# Arguments are names of mutants; none means all.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target/mutants} RUSTFLAGS="--cfg loom"
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

mkdir -p "$copy/crates/worker"
cp "$root/Cargo.lock" "$copy"
sed 's/^members = .*/members = ["crates\/wire"]/; /^exclude/d; /^\(worker\|front\|door\) =/d' \
    "$root/Cargo.toml" >"$copy/Cargo.toml"
survivors=0
wanted=" $* "

# mutant NAME FILE MODELS PERL: PERL changes the file, MODELS (separated by spaces) must fail.
mutant() {
    [ "$wanted" = "  " ] || [[ $wanted == *" $1 "* ]] || return 0
    rm -rf "$copy/crates/wire" "$copy/crates/worker/src"
    cp -r "$root/crates/wire" "$copy/crates/wire"
    cp -r "$root/crates/worker/src" "$copy/crates/worker/src"
    perl -0pi -e "$4" "$copy/crates/wire/src/$2"
    if cmp -s "$root/crates/wire/src/$2" "$copy/crates/wire/src/$2"; then
        printf '| %-28s | %-11s | PATTERN NOT FOUND |\n' "$1" "${2##*/}"
        survivors=$((survivors + 1))
        return
    fi
    # shellcheck disable=SC2086 # MODELS are several words on purpose.
    (cd "$copy" && timeout 300 cargo test -q -p wire --release --test loom -- $3) >"$copy/log" 2>&1
    local caught
    caught=$(sed -n 's/^    \([a-z]*::[a-z_]*\)$/\1/p' "$copy/log" | sort -u | paste -sd, | sed 's/,/, /g')
    if [ -z "$caught" ]; then
        caught="SURVIVES"
        grep -q '^error' "$copy/log" && caught="DOES NOT BUILD OR ABORTS: $(grep -m1 ^error "$copy/log")"
        survivors=$((survivors + 1))
    fi
    printf '| %-28s | %-11s | %s |\n' "$1" "${2##*/}" "$caught"
}

printf '| %-28s | %-11s | %s |\n|---|---|---|\n' mutant file 'caught by'

# The six full fences.
mutant no-fence-in-arm doorbell.rs bells::a_put \
    's/(fetch_or\(1 << \(seat % 64\), AcqRel\);\s*)fence\(SeqCst\);/$1/'
mutant no-fence-in-ring_one doorbell.rs bells::a_put \
    's/(pub fn ring_one\(&self\) -> bool \{\s*)fence\(SeqCst\);/$1/'
mutant no-fence-in-must_ring doorbell.rs reply:: \
    's/(pub fn must_ring\(&self\) -> bool \{\s*)fence\(SeqCst\);/$1/'
mutant no-fence-in-announce_sleep doorbell.rs reply:: \
    's/(self.sleeping.store\(1, Relaxed\);\s*)fence\(SeqCst\);/$1/'
mutant no-fence-in-wake_writer slot.rs reply:: \
    's/(pub fn wake_writer\(&self\) \{\s*)fence\(SeqCst\);/$1/'
mutant no-fence-in-wait_for_room slot.rs reply:: \
    's/(self.wants_room.store\(1, Relaxed\);\s*)fence\(SeqCst\);/$1/'

# The swaps.
mutant armed-load-and-store doorbell.rs bells::two_puts \
    's/seen = word.fetch_and\(!bit, AcqRel\);/seen = word.load(Acquire); word.store(seen & !bit, Release);/'
mutant claim-load-and-store slot.rs claims:: \
    's/self.state.compare_exchange\(from.pack\(\), to.pack\(\), AcqRel, Relaxed\).is_ok\(\)/{ let same = self.state.load(Acquire) == from.pack(); if same { self.state.store(to.pack(), Release) }; same }/'
mutant prepare-by-store doorbell.rs bells::retirement \
    's/self.word.swap\(RUNS, Acquire\);/self.word.store(RUNS, Relaxed);/'
mutant sleep-by-store doorbell.rs bells:: \
    's/self.word.compare_exchange\(RUNS, SLEEPS, AcqRel, Acquire\).is_ok\(\)/{ self.word.store(SLEEPS, Relaxed); true }/'

# Publication and order.
mutant ring-entry-relaxed queue.rs 'bells::a_put claims::' \
    's/store\(entry, Release\)/store(entry, Relaxed)/'
mutant entry-before-state queue.rs claims:: \
    's/(        self.slots\[slot as usize\].state.store\(Word::queued\(position\).pack\(\), Release\);\n)(.*?entry, Release\);\n)/$2$1/s'
mutant note-summary-first doorbell.rs reply:: \
    's/(        self.bits\[word\].fetch_or.*?\n)(        self.summary.fetch_or.*?\n)/$2$1/'
mutant hole-is-passed queue.rs claims::two_front \
    's/Entry::Hole => \{\s*at_head = false;/Entry::Hole => { queue.advance_past(position);/'
mutant tail-below-head queue.rs claims::two_front \
    's/tail.saturating_sub/tail.wrapping_sub/'
mutant any-generation-takes queue.rs claims::a_switch \
    's/self.header.serving.load\(Acquire\) != generation/false/'

# Looking again, and settlement.
mutant front-looks-once doorbell.rs reply:: \
    's/let quiet = self.summary.load\(Relaxed\) == 0;/let quiet = true;/'
mutant writer-looks-once slot.rs reply:: \
    's/if self.room_beyond\(written\) < REPLY_ROOM as u32 && self.cancelled.load\(Acquire\) == 0 \{\s*futex_wait/if true { futex_wait/'
mutant back-unannounced ../../worker/src/crew.rs bells::a_sibling_is_armed_again \
    's/(state.aside = false;\s*)state.rearm\(board\);/$1let _ = board;/'
mutant back-looks-not ../../worker/src/crew.rs bells::a_sibling_is_armed_again \
    's/(state.aside = false;\s*state.rearm\(board\);\s*)state.armed.is_some\(\)/$1false/'
mutant no-returned-hint settle.rs claims::a_re \
    's/self.queue.returned.fetch_or\(1 << \(index \/ GROUP\), Release\);//'
mutant settle_seats-rings-no-seats settle.rs deaths::a_worker_dies_passing \
    's/self.ring_claimed\(\);//'
mutant settle_front-rings-no-seats settle.rs deaths::a_front \
    's/(.*)self.ring_claimed\(\);/$1/s'
mutant settle-trusts-the-word doorbell.rs 'deaths::a_front deaths::a_worker_dies_beside' \
    's/seat.word.swap\(RUNG, AcqRel\);\s*futex_wake\(&seat.word\);/seat.ring();/'
mutant settle-rings-no-fronts settle.rs deaths::a_worker_dies_before \
    's/ring_fronts: u64::MAX/ring_fronts: 0/'
mutant settle-wakes-no-writer settle.rs reply::a_front_dies \
    's/slot.wake_writer\(\);//'

# Requests whose time is up.
mutant settle-returns-overdue settle.rs overdue::a_struck \
    's/!slot.is_overdue\(word.position\)/true/'
mutant strike-trusts-the-seat overdue.rs overdue::the_next \
    's/clock.served.load\(Acquire\) != served/false/'
mutant strike-reads-the-deadline overdue.rs overdue::an_extension \
    's/clock.deadline_ns.compare_exchange\(seen, 0, AcqRel, Relaxed\).ok\(\)\?;/(clock.deadline_ns.load(Acquire) == seen).then_some(())?;/'
mutant strike-notes-nothing overdue.rs overdue::a_struck \
    's/front.note\(index as u32\);//'
mutant mark-without-position overdue.rs overdue::the_next \
    's/self.overdue.load\(Relaxed\) == position \+ 1/self.overdue.load(Relaxed) != 0/'
mutant served-before-the-deadline overdue.rs overdue::the_next \
    's/(        \/\/ Where nothing is due.*?\n        \}\n)(.*?Release\);\n)/$2$1/s'
mutant alarm-for-anybody overdue.rs overdue::an_alarm \
    's/self.alarm.load\(Acquire\) == self.present\(\)/self.alarm.load(Acquire) != 0/'
mutant alarm-rings-nobody overdue.rs overdue::an_alarm \
    's/futex_wake\(&self.alarms\);//'
exit $((survivors > 0))
