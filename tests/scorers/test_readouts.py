"""What is read from a model at a step is the probability that the step is good."""

from math import exp, log

import pytest

from pipeline.scorers.readouts import Classes, TokenPair, Value


def test_a_score_is_the_probability_of_good() -> None:
    assert TokenPair(good=7, bad=3).score([log(0.8), log(0.2)]) == pytest.approx(0.8)
    assert Value().score([log(4.0)]) == pytest.approx(0.8)
    assert Classes(count=3, good=2).score([0.0, 1.0, 2.0]) == pytest.approx(exp(2) / (1 + exp(1) + exp(2)))


@pytest.mark.parametrize(("logit", "score"), [(1000.0, 1.0), (-1000.0, 0.0)])
def test_no_logit_is_too_large(logit: float, score: float) -> None:
    assert Value().score([logit]) == TokenPair(good=1, bad=0).score([logit, 0.0]) == score
    assert Classes().score([0.0, logit]) == score
