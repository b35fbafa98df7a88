//! Names that are not accepted: fio's other keys, and unknown ones.

/// Keys of any version of fio that are not accepted: a reason, and the keys that it applies to.
const NOT_TAKEN: &[(&str, &str)] = &[
    ("commands are not run", "exec_prerun exec_postrun"),
    (
        "zones are not taken",
        "zonesize zonecapacity zonerange zoneskip read_beyond_wp max_open_zones \
         job_max_open_zones ignore_zone_limits zone_reset_threshold zone_reset_frequency \
         recover_zbd_write_error write_zone_remainder",
    ),
    ("there are no trims", "trim_verify_zero trim_backlog trim_backlog_batch num_range"),
    (
        "traces are not taken",
        "read_iolog write_iolog read_iolog_chunked replay_no_stall replay_redirect replay_scale \
         replay_align replay_time_scale replay_skip merge_blktrace_file merge_blktrace_scalars \
         merge_blktrace_iters",
    ),
    (
        "give processes their CPUs and priorities from outside, by taskset(1) or nice(1)",
        "cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy nice prio \
         prioclass cgroup cgroup_weight cgroup_nodelete uid gid gtod_cpu lockmem ioscheduler \
         log_compression_cpus verify_async_cpus comm",
    ),
    (
        "pauses come after thinktime_blocks operations, and last for thinktime",
        "thinktime_iotime thinkcycles",
    ),
    ("the mean of a rate is that of the whole job", "rate_cycle ratecycle rate_ignore_thinktime"),
    (
        "what is written is random, a pattern, zeros, or a given percentage of zeros",
        "buffer_compress_chunk dedupe_mode dedupe_working_set_percentage \
         dedupe_global",
    ),
    (
        "only whole blocks are checked, after all writes",
        "verify_interval verify_offset verify_backlog_batch verify_state_load verify_pattern \
         verify_pattern_interval verify_write_sequence verify_header_seed verify_policy \
         verifysort verifysort_nr",
    ),
    ("files are those that filename names, or the section", "opendir filetype"),
    ("all files of a job are open while it runs", "openfiles"),
    (
        "offsets follow from rw and random_distribution",
        "offset_align random_sequence_stride sprandom spr_op spr_num_regions \
         spr_cs",
    ),
    ("the mix is drawn anew for each operation; fio itself ignores this key", "rwmixcycle"),
    ("fio itself has percentage_random instead", "percentage_sequential"),
    (
        "the depth is the one that iodepth says",
        "iodepth_low latency_window latency_percentile latency_run",
    ),
    (
        "a job ends by its bytes or its runtime",
        "ramp_size steadystate ss steadystate_duration ss_dur steadystate_ramp_time \
         ss_ramp ss_ramp_time steadystate_check_interval ss_interval",
    ),
    (
        "flushes are those of sync, fsync, fdatasync and end_fsync",
        "write_barrier sync_file_range end_syncfs",
    ),
    (
        "the first error ends the run, and each job ends when it is done",
        "ignore_error exit_what exitall_on_error",
    ),
    (
        "the jobs of a group run at their own speed; see rate",
        "flow flow_id flow_sleep flow_watermark",
    ),
    (
        "no log files are written",
        "log_prio log_compression log_store_compressed log_alternate_epoch \
         log_alternate_epoch_clock_id log_window_value log_issue_time job_start_clock_id",
    ),
    ("a profile brings its own jobs", "profile"),
    (
        "requests carry no priorities and no hints",
        "cmdprio_class cmdprio cmdprio_bssplit priohint fdp fdp_pli fdp_pli_select \
         dataplacement data_placement dp_scheme plids plid_select fadvise_stream",
    ),
    ("all requests of a job are polled, or none; see hipri", "hipri_percentage"),
    ("buffers are one mapped region, aligned to pages", "thp iomem_align mem_align"),
    ("offsets come from wrote's own generator", "use_os_rand"),
    (
        "it belongs to an engine of fio's that is not here",
        "apptag apptag_mask arguments bindname brick busy_poll busy_wait_polling cdb_len \
         chunck_size chunk_size clientname clustername cmd_type conf cont cpuchunks cpuload \
         cpumode cuda_io deac direct_write_to_pmem donorname dummy exit_on_io_done gpu_dev_id \
         gpu_dev_ids grace_time hdfs_use_direct hdfsdirectory hostname http_host http_mode \
         http_object_mode http_pass http_s3_key http_s3_keyid http_s3_region \
         http_s3_security_token http_s3_sse_customer_algorithm http_s3_sse_customer_key \
         http_s3_storage_class http_swift_auth_token http_user http_verbose https initiator \
         inplace interface libaio_vectored libblkio_driver \
         libblkio_force_enable_completion_eventfd libblkio_num_entries libblkio_path \
         libblkio_pre_connect_props libblkio_pre_start_props libblkio_queue_size \
         libblkio_vectored libblkio_wait_mode libblkio_write_zeroes_on_trim listen \
         md_per_io_size mss namenode nfs_url no_completion_thread nodelay object_class pi_act \
         pi_chk pingpong pool port program proto protocol rbd_encryption_format \
         rbd_encryption_passphrase rbdname read_mode readfua rocm_io serverip sg_write_mode \
         single-instance single_instance skip_bad stat_type std_redirect stream_id svcl \
         touch_objects ttl uri verb verify_bytchk verify_mode volume window_size write_mode \
         writefua xnvme_admin xnvme_async xnvme_be xnvme_dev_nsid xnvme_dev_subnqn xnvme_iovec \
         xnvme_mem xnvme_sync",
    ),
];

/// Returns why a fio key is not supported.
pub(super) fn why_not_taken(name: &str) -> Option<&'static str> {
    let mut all = NOT_TAKEN.iter();
    all.find(|(_, keys)| keys.split(' ').any(|key| key == name)).map(|(why, _)| *why)
}

/// Explains why `name` is not accepted; `taken` are the accepted names.
pub(super) fn unknown(name: &str, taken: impl Iterator<Item = &'static str>) -> String {
    if let Some(why) = why_not_taken(name) {
        return format!("fio knows this key, but it is not taken here: {why}");
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
