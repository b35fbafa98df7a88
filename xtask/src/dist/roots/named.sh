# Serves a log at a name, ends the server, and reads the log. The exit code is 143 if the signal
# came before the server listened for it.
echo 127.0.0.1 here.example >/etc/hosts
wrote serve /data/log --listen tcp://here.example:0 2>/tmp/said &
for _ in $(seq 600); do grep -q listening /tmp/said && break; kill -0 $!; sleep 0.1; done
grep -q listening /tmp/said || { cat /tmp/said >&2; exit 1; }
kill $!
wait $! || test $? = 143
wrote log stat /data/log
rm -r /data/log
