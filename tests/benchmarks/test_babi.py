"""benchmarks/babi.py on a few questions in the public format."""

import babi
import pytest

QUESTIONS = "1 Mary moved to the bathroom.\n2 Is Mary in the bathroom?\tyes\t1\n3 Is Mary in the garden?\tno\t1\n"
FEW = ["--steps", "8", "--restarts", "1", "--d", "4"]


def written(folder, task):
    for split in ("train", "test"):
        (folder / f"qa{task}_x_{split}.txt").write_text(QUESTIONS, encoding="utf-8")


@pytest.mark.parametrize("task", [1, 6])
def test_every_task_gets_its_row(tmp_path, capsys, task):
    written(tmp_path, task)
    assert babi.main([str(tmp_path), "--tasks", str(task), *FEW]) == 0
    head, line, row = capsys.readouterr().out.splitlines()
    assert head.count("|") == line.count("|") == row.count("|")
    assert row.startswith(f"| {task} | 3 |")
    assert row.endswith("| 0.1 % | 0.2 % | 0.0 % | 0.8 % |" if task == 1 else "| – | – | – | – |")


def test_a_missing_file_is_told_before_anything_is_trained(tmp_path, monkeypatch):
    written(tmp_path, 1)
    monkeypatch.setattr(babi, "trained", None)
    with pytest.raises(SystemExit, match=r"Expected one file qa6_…_train\.txt"):
        babi.main([str(tmp_path), "--tasks", "1", "6", *FEW])


@pytest.mark.parametrize("task", ["0", "21", "six"])
def test_there_are_twenty_tasks(tmp_path, capsys, task):
    with pytest.raises(SystemExit):
        babi.main([str(tmp_path), "--tasks", task])
    assert f"argument --tasks: invalid {'int value' if task == 'six' else 'choice'}" in capsys.readouterr().err
