"""Device, seed, threads, profile, folders: runtime.py."""

import random
import warnings

import pytest
import torch

from course_lib import runtime


@pytest.fixture(autouse=True)
def no_memory_of_agreement(monkeypatch):
    monkeypatch.setattr(runtime, "_agreement", {})


@pytest.fixture
def machine(monkeypatch):
    """A machine with the given accelerators."""

    def build(cuda=False, mps=False):
        monkeypatch.delenv("COURSE_DEVICE", raising=False)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return build


# --- profile and device ---------------------------------------------------------------------------------------------


def test_device_is_the_best_there_is(machine, monkeypatch):
    machine()
    assert runtime.device() == torch.device("cpu")
    machine(cuda=True, mps=True)
    assert runtime.device() == torch.device("cuda")
    machine(mps=True)
    monkeypatch.setattr(runtime, "agrees_with_cpu", lambda name: True)
    assert runtime.device() == torch.device("mps")
    monkeypatch.setattr(runtime, "agrees_with_cpu", lambda name: False)
    assert runtime.device() == torch.device("cpu")


def test_device_by_request(machine, monkeypatch):
    machine(cuda=True)
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    assert runtime.device() == torch.device("cpu")
    monkeypatch.setenv("COURSE_DEVICE", "gpu")
    with pytest.raises(ValueError, match=r"COURSE_DEVICE is 'gpu'; expected one of cpu, cuda, mps\."):
        runtime.device()


def test_an_mps_that_fails_is_not_used(machine, monkeypatch):
    machine(mps=True)

    def broken(name):
        if name == "mps":
            raise RuntimeError("no such kernel")
        return torch.zeros(1)

    monkeypatch.setattr(runtime, "_one_step", broken)
    with pytest.warns(
        UserWarning, match="'mps' failed with RuntimeError: no such kernel; the course goes on with the CPU"
    ):
        assert runtime.device() == torch.device("cpu")


def test_profile_follows_the_device(machine, monkeypatch):
    monkeypatch.delenv("COURSE_PROFILE", raising=False)
    machine()
    assert runtime.profile() == "cpu"
    machine(cuda=True)
    assert runtime.profile() == "gpu"


@pytest.mark.parametrize("name", runtime.PROFILES)
def test_profile_from_the_environment(name, machine, monkeypatch):
    machine(cuda=name == "cpu")
    monkeypatch.setenv("COURSE_PROFILE", name)
    assert runtime.profile() == name


def test_an_empty_profile_is_none(machine, monkeypatch):
    machine()
    monkeypatch.setenv("COURSE_PROFILE", "")
    assert runtime.profile() == "cpu"


def test_an_unknown_profile_is_an_error(monkeypatch):
    monkeypatch.setenv("COURSE_PROFILE", "tpu")
    with pytest.raises(ValueError, match=r"^COURSE_PROFILE is 'tpu'; expected one of cpu, gpu, smoke\.$"):
        runtime.profile()


# --- agreement with the CPU -----------------------------------------------------------------------------------------


def test_the_cpu_agrees_with_itself():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert runtime.agrees_with_cpu("cpu")


def test_the_step_trains_every_weight():
    torch.manual_seed(1)
    first = runtime._one_step("cpu")
    torch.manual_seed(2)
    assert torch.equal(first, runtime._one_step("cpu"))  # it draws from its own generator
    start = torch.Generator().manual_seed(0)
    torch.randn(2, 5, 8, generator=start)
    moved = (first - torch.randn(4, 8, 8, generator=start).mul_(0.3)).abs().amax(dim=(1, 2))
    assert (moved > 1e-5).all()


@pytest.mark.parametrize(("error", "agrees"), [(0.0, True), (5e-4, True), (2e-3, False), (float("nan"), False)])
def test_a_small_difference_passes_and_a_large_one_does_not(error, agrees):
    def step(name):
        return torch.ones(3) + (error if name == "other" else 0.0)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert runtime.agrees_with_cpu("other", step) is agrees
    assert len(caught) == (not agrees)
    if not agrees:
        assert "One training step on 'other' differs from the CPU by" in str(caught[0].message)


def test_agreement_is_measured_once():
    calls = []

    def step(name):
        calls.append(name)
        return torch.zeros(1) if name == "cpu" else torch.ones(1)

    with pytest.warns(UserWarning, match="differs"):
        runtime.agrees_with_cpu("other", step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not runtime.agrees_with_cpu("other", step)
    assert calls == ["other", "cpu"]


def test_measuring_does_not_disturb_the_caller():
    torch.manual_seed(3)
    runtime.agrees_with_cpu("cpu")
    assert torch.equal(torch.get_rng_state(), torch.Generator().manual_seed(3).get_state())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_cuda_agrees():
    assert runtime.agrees_with_cpu("cuda")


# --- seed and threads -----------------------------------------------------------------------------------------------


def test_seed():
    generator = runtime.seed(4)
    first = random.random(), torch.rand(3), torch.rand(3, generator=generator)
    generator = runtime.seed(4)
    again = random.random(), torch.rand(3), torch.rand(3, generator=generator)
    assert first[0] == again[0]
    assert torch.equal(first[1], again[1])
    assert torch.equal(first[2], again[2])
    assert not torch.equal(first[1], torch.rand(3))


def test_the_returned_generator_is_its_own():
    generator = runtime.seed(4)
    state = torch.get_rng_state()
    torch.rand(10, generator=generator)
    assert torch.equal(state, torch.get_rng_state())


def test_threads_are_set_and_put_back():
    before = torch.get_num_threads()
    with runtime.threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    with pytest.raises(KeyError), runtime.threads(1):
        raise KeyError
    assert torch.get_num_threads() == before
