# The service is started, sent messages, reloaded and stopped, and its log is read. Every protection
# of the unit is in force, and io_uring is used in spite of them.
wrote serve --config /etc/wrote.toml --check
systemctl start wrote.service
process=$(systemctl show -P MainPID wrote.service)
bash -c 'exec 3<>/dev/tcp/127.0.0.1/2514
    printf "1 open 30 relp_version=0\ncommands=syslog\n2 syslog 7 message\n" >&3
    timeout 30 grep -q -m1 "^2 rsp 6 200 OK" <&3'
grep -q '^Seccomp:.2$' /proc/$process/status
ls -l /proc/$process/fd | grep -q io_uring
systemctl reload wrote.service
systemctl is-active wrote.service
systemctl stop wrote.service
test $(systemctl show -P Result wrote.service) = success
wrote log verify /var/lib/wrote/events
echo the service is fine
