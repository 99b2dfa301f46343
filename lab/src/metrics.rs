//! The metrics there are: what each is called, its unit, and which way is better.
//!
//! A metric's name is `PHASE.NAME` or `PHASE.NAME.CLASS`; those of the whole cell have no phase.

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name without phase and class.
    pub name: &'static str,
    /// For a column's head.
    pub head: &'static str,
    /// Unit, shown once.
    pub unit: &'static str,
    /// Larger is better?
    pub more_is_better: bool,
    /// Digits behind the point.
    pub digits: usize,
    /// What exactly it is.
    pub about: &'static str,
}

const fn metric(
    name: &'static str,
    head: &'static str,
    unit: &'static str,
    more_is_better: bool,
    digits: usize,
    about: &'static str,
) -> Metric {
    Metric { name, head, unit, more_is_better, digits, about }
}

/// All of them.
pub const ALL: &[Metric] = &[
    metric("rps", "req/s", "1/s", true, 0, "good answers complete in time, a second"),
    metric(
        "per_cpu",
        "req/CPU-s",
        "1/s",
        true,
        0,
        "good answers for each second of CPU of the server's whole process tree",
    ),
    metric("cpu_us", "CPU/req", "µs", false, 2, "the reciprocal of req/CPU-s"),
    metric("mean_ms", "mean", "ms", false, 2, "mean latency"),
    metric("p50_ms", "p50", "ms", false, 2, "half of the good answers were faster"),
    metric("p90_ms", "p90", "ms", false, 2, "90 % were faster"),
    metric("p95_ms", "p95", "ms", false, 2, "95 % were faster"),
    metric("p99_ms", "p99", "ms", false, 2, "99 % were faster"),
    metric("p999_ms", "p99.9", "ms", false, 2, "99.9 % were faster"),
    metric(
        "uncorrected_p99_ms",
        "naive p99",
        "ms",
        false,
        2,
        "open loop only: the p99 of a generator that counts from when a request was really sent",
    ),
    metric("max_ms", "max", "ms", false, 1, "the slowest"),
    metric("tail", "p99/p50", "", false, 2, "how far the slow ones are from the usual ones"),
    metric("failed", "failed", "", false, 0, "requests without a whole 2xx answer"),
    metric("failed_share", "failed", "%", false, 2, "the same, of all requests"),
    metric("mb_per_s", "MB/s", "MB/s", true, 1, "body bytes of good answers (or of uploads)"),
    metric("gap_ms", "longest gap", "ms", false, 1, "longest time without any good answer"),
    metric(
        "dispersion",
        "dispersion",
        "",
        false,
        2,
        "variance/mean of the answers in each 100 ms: 1 is a Poisson process, more is clustering",
    ),
    metric(
        "jain",
        "Jain",
        "",
        true,
        3,
        "fairness of the spread over workers: 1 is even, 1/n is one worker for all",
    ),
    metric("workers_seen", "workers", "", true, 0, "workers that answered anything"),
    metric("most_share", "busiest", "%", false, 1, "share of the busiest worker"),
    metric(
        "served",
        "served",
        "",
        true,
        4,
        "part of the possible work (workers / mean service time) that was done",
    ),
    metric(
        "switches",
        "switches/req",
        "",
        false,
        3,
        "context switches of the whole tree for each good answer",
    ),
    metric(
        "goodput",
        "goodput",
        "",
        true,
        3,
        "good answers a second during the overload / capacity",
    ),
    metric("queued", "queued", "", false, 0, "requests unanswered when the overload ended"),
    metric(
        "drain_ms",
        "drain",
        "ms",
        false,
        0,
        "from the end of the overload until the last request due before it is answered",
    ),
    metric(
        "drain_ratio",
        "drain/ideal",
        "",
        false,
        2,
        "drain time / (queued that were answered well / capacity)",
    ),
    metric(
        "recovery_ms",
        "recovery",
        "ms",
        false,
        0,
        "from the end of the overload until requests that are due are answered as fast as before it",
    ),
    metric("kills", "kills", "", true, 0, "workers killed"),
    metric(
        "lost_per_kill",
        "lost/kill",
        "",
        false,
        2,
        "requests without a good answer for each kill",
    ),
    metric("deploys", "deploys", "", true, 0, "deploys of new code"),
    metric(
        "new_ms",
        "first new",
        "ms",
        false,
        0,
        "from the order until the new code first answered, in the slowest deploy",
    ),
    metric(
        "old_ms",
        "last old",
        "ms",
        false,
        0,
        "from the order until the old code last answered, in the slowest deploy",
    ),
    metric(
        "lost_per_deploy",
        "lost/deploy",
        "",
        false,
        2,
        "requests without a good answer for each deploy",
    ),
    metric(
        "failures",
        "unexpected",
        "",
        false,
        0,
        "targets only: unexpected failures, errors and complaints of all rounds together",
    ),
    metric(
        "pss_mb",
        "PSS",
        "MB",
        false,
        1,
        "memory of the whole tree after the last phase; shared pages count in parts",
    ),
    metric("pss_start_mb", "PSS at start", "MB", false, 1, "the same before any load"),
    metric(
        "start_ms",
        "start",
        "ms",
        false,
        0,
        "from the start of the process to the first answer",
    ),
];

/// The definition behind a full name; None for a name that no metric has. A phase or a class may
/// bear the name of a metric: what stands behind the first point decides.
pub fn find(full: &str) -> Option<&'static Metric> {
    let named = |name: &str| ALL.iter().find(|metric| metric.name == name);
    let mut parts = full.split('.');
    let (first, second) = (parts.next()?, parts.next());
    match second {
        Some(name) => named(name),
        None => named(first),
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_name_is_found_by_the_part_behind_the_phase() {
        assert_eq!(find("load.rps").map(|metric| metric.name), Some("rps"));
        assert_eq!(find("kills.p99_ms.served").map(|metric| metric.name), Some("p99_ms"));
        assert_eq!(find("pss_mb").map(|metric| metric.name), Some("pss_mb"));
        assert!(find("load.speed").is_none());
        assert!(find("rps.load").is_none());
    }
}
