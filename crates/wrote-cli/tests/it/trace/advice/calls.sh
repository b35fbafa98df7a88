set -e
echo new | replace a
echo new >f
flush f
flush_folder .
rm d
flush_folder .
for each in 1 2 3; do printf 'record%400s\n' ''; done | append log
flush_folder .
