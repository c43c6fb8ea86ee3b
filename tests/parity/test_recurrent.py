"""Our recurrent cells equal PyTorch's on the same weights: outputs, last states and every gradient, at 1e-6."""

import comparing
import pytest
import torch
from comparing import RUN
from torch import nn

from course_lib.measure import gradient_flow
from course_lib.models.recurrent import GRU, LSTM, Bidirectional, Classifier, Elman, lstm_step
from course_lib.pretrained import copy_recurrent_weights

PAIRS = {"Elman": (Elman, nn.RNN), "LSTM": (LSTM, nn.LSTM), "GRU": (GRU, nn.GRU)}
FIXED = [(1, 1, 1, 1), (2, 5, 3, 4), (3, 17, 8, 6), (4, 1, 2, 9)]
DRAWN = [tuple(torch.randint(1, 24, (4,), generator=torch.Generator().manual_seed(RUN + i)).tolist()) for i in range(4)]


def close(ours: torch.Tensor, theirs: torch.Tensor, what: str) -> None:
    comparing.close(ours, theirs, what, 1e-6)


@pytest.fixture
def generator() -> torch.Generator:
    torch.manual_seed(RUN)
    return torch.Generator().manual_seed(RUN)


@pytest.mark.parametrize("sizes", FIXED + DRAWN, ids=str)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.compares("Elman, LSTM, GRU, in double precision", "nn.RNN, nn.LSTM, nn.GRU")
def test_equal_to_pytorch_forward_and_backward(name, sizes, generator):
    batch, length, d_in, d_hidden = sizes
    ours, theirs = (
        kind(d_in, d_hidden, **options) for kind, options in zip(PAIRS[name], ({}, {"batch_first": True}), strict=True)
    )
    ours.double(), theirs.double()  # 1e-6 then is a bound on the formula, not on rounding
    copy_recurrent_weights(ours, theirs)
    x = torch.randn(batch, length, d_in, generator=generator, dtype=torch.double)
    start = [torch.randn(batch, d_hidden, generator=generator, dtype=torch.double) for _ in range(ours.states)]
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    outputs, state = ours(mine, tuple(start))
    packed = tuple(s[None] for s in start) if name == "LSTM" else start[0][None]
    expected, last = theirs(other, packed)
    close(outputs, expected, "outputs")
    for got, want in zip(state, last if name == "LSTM" else (last,), strict=True):
        close(got, want[0], "last state")
    weights = torch.randn(expected.shape, generator=generator, dtype=torch.double)
    (outputs * weights).sum().backward()
    (expected * weights).sum().backward()
    close(mine.grad, other.grad, "gradient of x")
    close(ours.W.grad, theirs.weight_ih_l0.grad, "gradient of W")
    close(ours.U.grad, theirs.weight_hh_l0.grad, "gradient of U")
    close(ours.b.grad, theirs.bias_ih_l0.grad, "gradient of b")
    if name == "GRU":
        close(ours.b_U.grad, theirs.bias_hh_l0.grad, "gradient of b_U")


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.compares("Elman, LSTM, GRU", "nn.RNN, nn.LSTM, nn.GRU")
@pytest.mark.usefixtures("device")
def test_equal_to_pytorch_in_float32(name, generator):
    ours, theirs = PAIRS[name][0](8, 16), PAIRS[name][1](8, 16, batch_first=True)
    copy_recurrent_weights(ours, theirs)
    x = torch.randn(4, 12, 8)
    close(ours(x)[0], theirs(x)[0], "outputs")


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.compares("Bidirectional", "nn.RNN, nn.LSTM, nn.GRU, bidirectional")
@pytest.mark.usefixtures("device")
def test_bidirectional_equal_to_pytorch(name, generator):
    cell, theirs = PAIRS[name][0], PAIRS[name][1](5, 7, batch_first=True, bidirectional=True)
    ours = Bidirectional(cell, 5, 7)
    copy_recurrent_weights(ours.forwards, theirs)
    copy_recurrent_weights(ours.backwards, theirs, direction="_reverse")
    x = torch.randn(3, 9, 5)
    close(ours(x), theirs(x)[0], "outputs")


@pytest.mark.parametrize("name", PAIRS)
def test_going_on_from_a_state_equals_one_go(name, generator):
    cell = PAIRS[name][0](3, 4)
    x = torch.randn(2, 10, 3, generator=generator)
    whole, last = cell(x)
    first, state = cell(x[:, :6])
    second, end = cell(x[:, 6:], state)
    assert torch.equal(torch.cat([first, second], dim=1), whole)
    assert all(torch.equal(a, b) for a, b in zip(end, last, strict=True))


@pytest.mark.parametrize("name", PAIRS)
def test_one_vector_is_the_same_state(name, generator):
    cell = PAIRS[name][0](3, 4)
    x, state = torch.randn(2, 3, generator=generator), torch.randn(2, 4 * cell.states, generator=generator)
    assert torch.equal(cell.advance_one_vector(x, state), torch.cat(cell.advance(x, state.chunk(cell.states, -1)), -1))


def test_a_step_may_return_its_state_as_a_list():
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    ours = LSTM(4, 5)
    torch.manual_seed(0)
    listed = LSTM(4, 5, step=lambda *inputs: list(lstm_step(*inputs)))
    assert torch.equal(listed(x)[0], ours(x)[0])


def test_no_output_sees_the_future(generator):
    for cell in (Elman(3, 4), LSTM(3, 4), GRU(3, 4)):
        x = torch.randn(1, 8, 3, generator=generator)
        changed = x.clone()
        changed[:, 5] += 1
        before, after = cell(x)[0], cell(changed)[0]
        assert torch.equal(before[:, :5], after[:, :5])
        assert not torch.equal(before[:, 5:], after[:, 5:])


def test_gradient_flow_is_the_product_of_the_jacobians(generator):
    A = torch.randn(3, 3, generator=generator).double()
    xs, state = torch.randn(4, 1, 3, generator=generator).double(), torch.zeros(1, 3).double()
    norms = gradient_flow(lambda x, h: x + h @ A.T, xs, state)
    expected = [(torch.ones(3).double() @ torch.matrix_power(A, 4 - t)).norm() for t in range(5)]
    assert torch.allclose(norms, torch.stack(expected))


def test_gradient_flow_leaves_the_first_state_alone():
    state = torch.zeros(1, 2)
    gradient_flow(lambda x, h: torch.tanh(x + h), torch.zeros(3, 1, 2), state)
    assert not state.requires_grad


@pytest.mark.parametrize("shape", [(2, 5), (2, 0, 3), (2, 5, 4)])
def test_wrong_input_is_refused_in_words(shape):
    with pytest.raises(ValueError, match=r"Expected x of shape \(batch, length ≥ 1, 3\); got"):
        Elman(3, 4)(torch.zeros(shape))


def test_sizes_below_one_are_refused():
    with pytest.raises(ValueError, match="at least 1; got 0 and 4"):
        LSTM(0, 4)


def test_reader_answers_from_the_last_true_token(generator):
    reader = Classifier(nn.GRU(6, 6, batch_first=True), 6, words=9, classes=2)
    tokens = torch.randint(9, (2, 7), generator=generator)
    filled = torch.cat([tokens, torch.zeros(2, 3, dtype=torch.long)], dim=1)
    assert torch.allclose(reader(filled, torch.tensor([7, 7])), reader(tokens), atol=1e-6)
