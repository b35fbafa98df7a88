//! Names that are not accepted: fio's other keys, and unknown ones.

/// fio's keys that are not accepted: a reason, and the keys of which it holds.
const NOT_TAKEN: &[(Option<&str>, &str)] = &[
    (Some("commands are not run"), "exec_prerun exec_postrun"),
    (
        Some("zones are not taken"),
        "zonesize zonecapacity zonerange zoneskip read_beyond_wp max_open_zones \
         job_max_open_zones ignore_zone_limits zone_reset_threshold zone_reset_frequency",
    ),
    (Some("there are no trims"), "trim_verify_zero trim_backlog trim_backlog_batch"),
    (
        Some("traces are not taken"),
        "read_iolog write_iolog read_iolog_chunked replay_no_stall replay_redirect \
         replay_scale replay_align replay_time_scale replay_skip merge_blktrace_file \
         merge_blktrace_scalars merge_blktrace_iters",
    ),
    (
        Some("give processes their CPUs and priorities from outside, by taskset(1) or nice(1)"),
        "cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy nice prio \
         prioclass cgroup cgroup_weight cgroup_nodelete uid gid gtod_cpu lockmem ioscheduler \
         log_compression_cpus verify_async_cpus",
    ),
    (
        Some("no job pauses between operations; see rate and rate_iops"),
        "thinktime_spin thinktime_blocks thinktime_blocks_type thinktime_iotime rate_cycle \
         rate_ignore_thinktime",
    ),
    (
        Some("what is written is random, zeros, or so many percent of zeros"),
        "buffer_pattern buffer_compress_chunk dedupe_mode dedupe_working_set_percentage \
         dedupe_global verify_pattern",
    ),
    (
        None,
        "wait_for opendir rw_sequencer iodepth_low offset_align number_ios openfiles \
         ignore_error write_barrier sync_file_range verify_interval verify_offset \
         verify_backlog_batch verify_state_load verify_pattern_interval verify_write_sequence \
         verify_header_seed latency_window latency_percentile latency_run exit_what \
         exitall_on_error log_prio log_compression log_store_compressed log_alternate_epoch \
         log_alternate_epoch_clock_id log_window_value log_issue_time profile flow flow_id \
         flow_sleep steadystate ss steadystate_duration ss_dur steadystate_ramp_time ss_ramp \
         steadystate_check_interval cmdprio_class cmdprio cmdprio_bssplit cmd_type \
         hipri_percentage thp fdp fdp_pli dataplacement num_range sprandom iomem_align \
         mem_align job_start_clock_id thinkcycles write_mode verify_mode readfua writefua \
         md_per_io_size pi_act pi_chk apptag apptag_mask",
    ),
];

/// Explains why `name` is not accepted; `taken` are the accepted names.
pub(super) fn unknown(name: &str, taken: impl Iterator<Item = &'static str>) -> String {
    let known = NOT_TAKEN.iter().find(|(_, keys)| keys.split(' ').any(|key| key == name));
    if let Some((why, _)) = known {
        let why = why.map_or(String::new(), |why| format!(": {why}"));
        return format!("fio knows this key, but it is not taken here{why}");
    }
    match near(name, taken) {
        Some(near) => format!("there is no such key; did you mean {near}?"),
        None => "there is no such key".into(),
    }
}

#[cfg(test)]
pub(super) fn not_taken() -> impl Iterator<Item = &'static str> {
    NOT_TAKEN.iter().flat_map(|(_, keys)| keys.split(' '))
}

/// Returns the most similar name, if at most one letter in four differs.
fn near(name: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let name = name.trim_start_matches('-').to_ascii_lowercase().replace('-', "_");
    if name.len() > 40 {
        return None;
    }
    let distance = |known: &&str| strsim::osa_distance(&name, known);
    let near = names.min_by_key(distance)?;
    (distance(&near) <= name.len().max(4) / 4).then_some(near)
}
