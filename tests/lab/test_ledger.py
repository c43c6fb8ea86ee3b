"""The ledger of findings: a table a lesson, read by the lab and written by benchmarks/claims.py."""

from course_lib.lab import ledger

TEXT = """# Findings

What they are.

## 01_first

| claim | expected | source | seed 0 | seed 1 |
|---|---|---|---|---|
| It falls | above 0.1 | S1 | 0.5 | 0.25 |
| It is 0 | below 1 | ours | 0 | 0 |

(A remark.)

## 03_third

| claim | expected | source | seed 0 | seed 1 |
|---|---|---|---|---|
| It rises | above 1e-07 | S2 | 3e-06 | 2 |
"""


def written(folder):
    file = folder / "claims.md"
    file.write_text(TEXT, encoding="utf-8")
    return file


def test_ranges_go_from_the_smallest_to_the_largest_value(tmp_path):
    file = written(tmp_path)
    assert ledger.ranges("01_first", file) == {"It falls": "0.25 … 0.5", "It is 0": "0"}
    assert ledger.ranges("03_third", file) == {"It rises": "3e-06 … 2"}
    assert ledger.ranges("02_second", file) == {}
    assert ledger.ranges("01_first", tmp_path / "elsewhere.md") == {}


def test_a_lesson_gets_a_new_table_and_the_others_stay(tmp_path):
    file = written(tmp_path)
    ledger.put("03_third", [0, 1], {"It sinks": ["below 1", "S3", "0.1", "0.2"]}, file)
    assert file.read_text(encoding="utf-8").startswith(TEXT[: TEXT.index("## 03")])
    assert ledger.entries(file)["03_third"] == {"It sinks": ["below 1", "S3", "0.1", "0.2"]}
    ledger.put("02_second", [0, 1], {"It stays": ["above 0", "S3", "1", "1"]}, file)
    assert list(ledger.entries(file)) == ["01_first", "02_second", "03_third"]
    assert [path.name for path in tmp_path.iterdir()] == ["claims.md"]
