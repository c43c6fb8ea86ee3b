"""The parts of benchmarks/multi30k.py that can be checked without the corpus."""

import itertools

import multi30k
import pytest
import torch


def rows(seed: int, count: int = 50) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 9, (count,), generator=generator).tolist()
    return [torch.randint(2, 30, (length,), generator=generator) for length in lengths]


def test_words_are_cut_as_spacy_cuts_them():
    """The words were written down from spaCy 3.8's blank English."""
    text = "A woman's t-shirt isn't red, (yes) \"hi\" at 5.30..."
    wanted = ["a", "woman", "'s", "t", "-", "shirt", "is", "n't", "red", ",", "(", "yes", ")", '"', "hi", '"', "at"]
    assert multi30k.words(text) == [*wanted, "5.30", "..."]


def test_learning_rate_rises_to_one_and_falls_to_zero():
    assert [multi30k.factor(spent, 0.25) for spent in (0, 0.125, 0.25, 0.625, 1, 1.1)] == [0, 0.5, 1, 0.5, 0, 0]


def test_an_epoch_has_every_pair_once_with_like_lengths_together():
    sources, targets = rows(0), rows(1)
    parts = multi30k.batches(sources, targets, 8, torch.Generator().manual_seed(0))
    assert sorted(i for part in parts for i in part) == list(range(50))
    assert sum(len({len(targets[i]) for i in part}) for part in parts) <= len(parts) + 7


def test_the_target_is_shifted_by_its_start_and_filled_up():
    sources = [torch.tensor([5, 6]), torch.tensor([7])]
    targets = [torch.tensor([8]), torch.tensor([9, 10])]
    source, lengths, before, after = multi30k.tensors(sources, targets, [0, 1])
    assert source.tolist() == [[5, 6], [7, 0]]
    assert lengths.tolist() == [2, 1]
    assert before.tolist() == [[1, 8, 0], [1, 9, 10]]
    assert after.tolist() == [[8, 0, -100], [9, 10, 0]]


@pytest.mark.parametrize("done", [0, 3, 7, 20])
def test_a_stopped_run_goes_on_with_the_batch_that_comes_next(done):
    sources, targets, recipe = rows(0), rows(1), multi30k.Recipe(batch=8)
    whole, rest = (multi30k._from(start, sources, targets, recipe) for start in (0, done))
    for _ in range(done):
        next(whole)
    assert [next(rest) for _ in range(12)] == [next(whole) for _ in range(12)]


@pytest.mark.parametrize("given", [[], ["--data", "/nowhere/at/all"]])
def test_without_the_corpus_it_says_so(given, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["multi30k.py", *given])
    assert multi30k.main() == 0
    assert "Multi30k is not part of the course" in capsys.readouterr().out


def test_a_run_goes_on_from_its_checkpoint_and_refuses_another(tmp_path, monkeypatch):
    clock = itertools.count()  # each look at it takes a second
    monkeypatch.setattr(multi30k.time, "process_time", lambda: float(next(clock)))
    sizes = {"d": 8, "layers": 1, "heads": 2, "d_ff": 8, "source_tokens": 30, "target_tokens": 30, "batch": 8}
    recipe = multi30k.Recipe(minutes=0.5, **sizes)
    sources, targets, file = rows(0), rows(1), tmp_path / "run.pt"
    model, epochs = multi30k.train(recipe, sources, targets, file)
    again, same_epochs = multi30k.train(recipe, sources, targets, file)  # its time is over: nothing is left to do
    assert epochs == same_epochs > 0
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))

    saved = torch.load(file, weights_only=True)
    saved["run"]["spent"] -= 5  # as if it had been stopped before its end
    torch.save(saved, file)
    assert multi30k.train(recipe, sources, targets, file)[1] > epochs
    with pytest.raises(SystemExit, match="another run"):
        multi30k.train(multi30k.Recipe(**sizes), sources, targets, file)
