"""Run the notebooks anew and write their outputs: `python -m tests.refresh_notebooks [NAME …]`.

What is written is clean: cell ids stay, counts are 1 to n, and nothing is kept that differs from
run to run (times, widget models, the kernel's version). Review the diff: nbval (see
`test_notebooks.py`) only proves that outputs are what the code gives, not that they are right.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}

#: Metadata that a cell may have.
CELL_METADATA = ("tags",)

#: A live view's model has a random id, and is gone with its kernel; the text and HTML beside it
#: stay.
LIVE = "application/vnd.jupyter.widget-view+json"


def notebooks() -> list[Path]:
    """The lessons, in order."""
    return sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))


def kernel_environment(folder: str) -> dict[str, str]:
    """What a kernel needs to find this checkout, and nobody's own settings."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "IPYTHONDIR": folder}


def executed(notebook: NotebookNode, folder: Path = NOTEBOOKS) -> NotebookNode:
    """Run every cell in a fresh kernel; raise the first error that no tag allows."""
    with tempfile.TemporaryDirectory() as settings:
        client = NotebookClient(
            notebook,
            timeout=60,
            kernel_name="python3",
            store_widget_state=False,
            record_timing=False,
            coalesce_streams=True,  # in how many pieces a cell prints is chance
            resources={"metadata": {"path": str(folder)}},
        )
        return client.execute(env=kernel_environment(settings))


def clean(notebook: NotebookNode) -> NotebookNode:
    """Leave out whatever is not the lesson."""
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL})
    for cell in notebook.cells:
        cell.metadata = {key: cell.metadata[key] for key in CELL_METADATA if key in cell.metadata}
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(LIVE, None)
            if "metadata" in output:
                output.metadata = {}
    return notebook


def main(names: list[str]) -> int:
    """Refresh the lessons whose names begin with one of `names`; all of them without any."""
    chosen = [path for path in notebooks() if not names or path.name.startswith(tuple(names))]
    for path in chosen:
        notebook = nbformat.read(path, as_version=4)
        nbformat.write(clean(executed(notebook)), path)
        print(path.relative_to(ROOT))
    return 0 if chosen else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
