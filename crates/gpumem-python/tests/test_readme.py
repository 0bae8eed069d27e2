"""What the README shows runs as it stands there."""

import pathlib
import re

import pygpumem as gpumem
import numpy as np


def test_the_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes a file
    text = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 6
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert gpumem.get_current_device().name == "host:0"
    np.testing.assert_array_equal(names["y"].copy_to_host(), np.full(1000, 8, np.float32))
    np.testing.assert_array_equal(names["part"].copy_to_host(), names["array"].copy_to_host()[:, :2])
    assert set(names["arrays"]) == {"x", "table"}
