# An honest language in the shell's own words: everything that langs/README.md asks of a program.
# A rogue writes one of the functions `on_..` anew; `main "$@"` comes last.
set -e

# Each value of a byte as printf(1) escapes it, four characters a value.
values=
for high in 0 1 2 3; do
    for middle in 0 1 2 3 4 5 6 7; do
        for low in 0 1 2 3 4 5 6 7; do
            values="$values\\$high$middle$low"
        done
    done
done

# Prints as many letters, a to z again and again.
letters() {
    text=
    while [ "${#text}" -lt "$1" ]; do
        text="${text}abcdefghijklmnopqrstuvwxyz"
    done
    printf "%.$1s" "$text"
}

write_bytes() {
    whole=$((size / 256))
    rest=$(printf "%.$((size % 256 * 4))s" "$values")
    {
        while [ "$whole" -gt 0 ]; do
            printf "$values"
            whole=$((whole - 1))
        done
        printf "$rest"
    } > "$path"
}

read_bytes() {
    set -- $(od -An -v -tu1 "$path" | awk '{ for (i = 1; i <= NF; i++) sum += $i; bytes += NF }
        END { printf "%d %d", bytes, sum }')
    bytes=$1 sum=$2
}

save_text() {
    printf %s "$text" > "$path"
}

sync_text() {
    sync "$path"
}

append_lines() {
    left=$count
    while [ "$left" -gt 0 ]; do
        echo "$text"
        left=$((left - 1))
    done >> "$path"
}

# Runs a function and keeps how long that took.
timed() {
    before=$(date +%s%N)
    "$1"
    after=$(date +%s%N)
    timings="$timings${timings:+, }$((after - before))"
}

timed_each() {
    each=$count
    while [ "$each" -gt 0 ]; do
        timed "$1"
        each=$((each - 1))
    done
}

answer() {
    printf '{"elapsed_ns": [%s], "bytes": %s%s}\n' "$timings" "$bytes" "${sum:+, \"sum\": $sum}"
}

on_write() { write_bytes; }
on_read() { read_bytes; }
on_save() { save_text; }
on_sync() { save_text && sync_text; }
on_lines() { append_lines; }
on_answer() { answer; }

main() {
    task=$1 path=$2 size=$3 count=$4 bytes=$3 timings= sum=
    case $task in
        bytes-write) timed_each on_write ;;
        bytes-read) timed_each on_read ;;
        save) text=$(letters "$size"); timed_each on_save ;;
        save-sync) text=$(letters "$size"); timed_each on_sync ;;
        lines) text=$(letters "$((size - 1))"); bytes=$((size * count)); timed on_lines ;;
        *) echo "no such task: $task" >&2; exit 2 ;;
    esac
    on_answer
}
