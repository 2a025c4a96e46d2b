"""`rigproof accept`: the machine tested, from the lock to the verdict."""

from __future__ import annotations

import argparse
import os

from acceptance import lock, outputs, preflight, preparation, selection, stopping, supervisor, unfinished
from acceptance.observe import draft
from acceptance.observe import inventory as observed
from acceptance.reports.terminal import Terminal
from acceptance.verbs import asked, spoken


def run(given: argparse.Namespace) -> int:
    """Test the machine; returns the verdict's exit code."""
    options, language = asked.options(given), spoken.language_of(given)
    screen = Terminal.on_stdout(language)
    hidden = selection.refuse_outside(options.gpus, os.environ)
    with stopping.interruptible(), lock.MachineLock(options.root) as held:
        supervisor.usable(options.out)
        # What an earlier run left behind goes first: it would hold memory, or an old verdict under the name of the newest.
        for sentence in unfinished.close_all(options.out, held.last_run(), options.root):
            screen.say(sentence, "yellow")
        outputs.unlink_latest(options.out)
        prepared = preparation.prepare(options)
        where, remark = preflight.choose(options, prepared.plan, prepared.inventory, screen.say)
        run_dir = supervisor.new_run_dir(options.out)
        held.claim(run_dir)
        outputs.link_latest(run_dir)
        asked.show(screen, prepared, remark, hidden, details=False)
        if prepared.machine is None:
            drafted = run_dir / "machine.toml"
            outputs.put(drafted, draft.render(prepared.inventory).encode("utf-8"), then="start again")
            screen.say(
                language("no machine file was given: one was drafted from what was found, to be corrected by hand:")
            )
            screen.path(str(drafted))
        try:
            screen.start(prepared.plan, {gpu.pci_address: gpu.name for gpu in observed.gpus(prepared.inventory)})
            found = supervisor.Supervisor(prepared, where, run_dir, screen.entry, language).run()
        finally:
            screen.stop()
        return spoken.close(screen, found, run_dir)
