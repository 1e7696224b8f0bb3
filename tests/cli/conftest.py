"""Run the command's entry point in this process."""

import sys

import pytest

from privet.cli import main


@pytest.fixture
def call_privet(monkeypatch, capsys):
    """Run ``privet`` with arguments: exit code, output, error output."""

    def call_main(*arguments):
        monkeypatch.setattr(sys, "argv", ["privet", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return caught.value.code or 0, captured.out, captured.err

    monkeypatch.setattr("warnings.showwarning", None)
    return call_main
