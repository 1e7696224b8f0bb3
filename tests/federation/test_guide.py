"""The guide's section on several parties runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"


def blocks():
    section = GUIDE.read_text(encoding="utf-8").split("## Several parties")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)


@pytest.mark.engines
def test_the_code_of_the_guide_runs(tmp_path):
    *here, script = blocks()
    dose = np.linspace(0, 100, 4_000)
    frame = pd.DataFrame({"dose": dose, "cured": np.where(dose > 40, "yes", "no")})
    for k, name in enumerate(("north", "south")):
        frame[k::2].to_csv(tmp_path / f"{name}.csv")
    (tmp_path / "parties.py").write_text("\n".join(here), encoding="utf-8")
    (tmp_path / "study.py").write_text(script, encoding="utf-8")
    for file, last in (("parties.py", "all follow the protocol"), ("study.py", "[2.5, 2.5]")):
        ran = subprocess.run(
            [sys.executable, file], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert not ran.returncode, ran.stderr
        assert last in ran.stdout.splitlines()[-1]
