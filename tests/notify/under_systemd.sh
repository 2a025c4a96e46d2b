# Played in mount and process namespaces of its own by test_under_systemd.py, with a systemd that knows nothing of this machine's:
# FOLDER holds home/ and the hook, RIGPROOF is the command.
set -eu
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/user/0 /run/lock
chmod 700 /run/user/0
export HOME="$FOLDER/home" XDG_RUNTIME_DIR=/run/user/0
unset XDG_CONFIG_HOME XDG_DATA_HOME DBUS_SESSION_BUS_ADDRESS
"$SYSTEMD" --user >"$FOLDER/systemd.log" 2>&1 &
ctl() { systemctl --user --no-pager --quiet "$@"; }
within() { n=0; until "$@"; do n=$((n + 1)); [ "$n" -lt 300 ] || { echo "not within 30 s: $*"; exit 9; }; sleep 0.1; done; }
answers() { ctl list-units >/dev/null 2>&1; }
times_told() { [ "$(grep -c '^told' "$FOLDER/told")" = "$1" ]; }
over() { [ "$(ctl show -P ActiveState rigproof-nightly-failed.service)" = inactive ]; }
drop() {
    mkdir -p "$HOME/.config/systemd/user/rigproof-nightly.service.d"
    printf '[Service]\nExecStart=\nExecStart=%s\n' "$1" >"$HOME/.config/systemd/user/rigproof-nightly.service.d/x.conf"
    ctl daemon-reload
    ctl reset-failed
}
within answers
cd "$FOLDER"
: >told

echo '# installed'
"$RIGPROOF" schedule install --user --at 05:10 -- --machine box.toml --on-fail "$FOLDER/hook 'two words' 50% \$HOME" >/dev/null
systemctl --user list-timers --no-pager | grep -o 'rigproof-nightly.timer *rigproof-nightly.service'
find "$HOME" -type f -o -type l | sed "s#$HOME/##" | sort

echo '# the machine file is wrong'
ctl start rigproof-nightly.service 2>/dev/null || echo failed
within times_told 1
within over
cat told
: >told

echo '# killed'
drop '/bin/sleep 600'
ctl start --no-block rigproof-nightly.service
sleep 0.5
ctl kill -s KILL rigproof-nightly.service
within times_told 1
within over
cat told
: >told

echo '# FAIL, which the run has told itself'
cat >fails <<'END'
#!/bin/sh
printf '{"invocation":"%s","run_dir":null,"told":true}' "$INVOCATION_ID" >reports/.told
exit 1
END
chmod +x fails
drop "$FOLDER/fails"
ctl start rigproof-nightly.service 2>/dev/null || echo failed
sleep 1
within over
cat told

: >told

echo '# exit code 1, and nobody was told'
drop '/bin/sh -c "exit 1"'
ctl start rigproof-nightly.service 2>/dev/null || echo failed
within times_told 1
within over
cat told
: >told

echo '# skipped'
drop '/bin/sh -c "exit 4"'
ctl start rigproof-nightly.service && echo no failure
within over
cat told

echo '# held back'
drop "/bin/touch $FOLDER/started"
touch /run/user/0/rigproof-hold
ctl start rigproof-nightly.service
[ -e "$FOLDER/started" ] || echo not started
rm -r "$HOME/.config/systemd/user/rigproof-nightly.service.d"

echo '# uninstalled'
"$RIGPROOF" schedule uninstall --user >/dev/null
find "$HOME" -type f -o -type l
systemctl --user list-unit-files --no-pager 'rigproof*' | grep rigproof || true
systemctl --user list-units --all --no-pager 'rigproof*' | grep rigproof || true
echo '# end'
