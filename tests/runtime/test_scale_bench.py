"""The simulations of `make bench-scale` cover a whole run, and their counts add up."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.core.records import Finish, Prefix, Problem, Request
from tests.bench.scale.chains import MAX_TOKENS, STEP_TOKENS, reply_to, steps_in, write_chains
from tests.bench.scale.cost import EFFICIENCY, SAVINGS, Pieces, costs
from tests.bench.scale.crowd import live
from tests.bench.scale.pace import QWEN_7B
from tests.bench.scale.run import CAPACITY, play

CHAINS = 12
DRAWS = 1_000


def test_a_run_on_virtual_engines_labels_every_chain_and_its_tokens_add_up(tmp_path: Path) -> None:
    data = write_chains(tmp_path / "chains.jsonl", CHAINS, seed=3)
    run = play(data, QWEN_7B, workers=2, settings=["estimator=fixed", "run.unit_problems=3"])
    totals = run.summary.totals
    assert (totals.chains, run.summary.units, run.steps) == (CHAINS, 4, steps_in(data))
    assert totals.rollouts == 8 * totals.prefixes
    assert run.work.generated == totals.tokens
    assert run.work.prefilled == run.least_prefilled < run.work.prompt
    # 12 chains do not fill a thousand places, and nothing ever waits.
    filled = 1 - run.idle
    assert filled == pytest.approx(run.work.generated / run.work.steps / CAPACITY, abs=0.1)
    assert run.tail == run.idle


def test_rollouts_are_right_as_often_as_their_prefix_says_and_as_long_as_what_is_left() -> None:
    problem = Problem(problem_id="p", text="It is worth [0.9000]. Its solutions take tokens: 300", golds=("7",))
    prefix = Prefix(prefix_id="x", step_index=2, text="Step 1 [0.5000].\nStep 2 [0.3000]." + " " * 67, prompt_ids=())
    replies = [
        reply_to(Request(request_id=str(number), issue_index=0, problem=problem, prefix=prefix))
        for number in range(DRAWS)
    ]
    assert sum("answer is 7." in reply.text for reply in replies) / DRAWS == pytest.approx(0.3, abs=0.06)
    assert sum(reply.tokens for reply in replies) / DRAWS == pytest.approx(200, rel=0.08)
    assert all(1 <= reply.tokens <= MAX_TOKENS for reply in replies)
    assert all((reply.finish is Finish.LENGTH) == (reply.tokens == MAX_TOKENS) for reply in replies)
    assert STEP_TOKENS < 200


@pytest.mark.parametrize("replicas", [1, 5])
def test_the_driver_hears_of_every_unit_once_however_many_workers(replicas: int) -> None:
    units = 70
    lived = live(units, replicas, unit_seconds=3.0)
    assert 3 * units * 0.8 < lived.busy_seconds * replicas < 3 * units * 1.2
    assert 0 <= lived.idle < 1
    # For each unit a question for free slots and the unit; for each worker its start, its end, and a look now and then.
    looks = replicas * (lived.seconds / 5 + 3)
    assert 2 * units <= lived.messages <= 2 * units + looks + 5 * replicas


def test_a_million_steps_by_hand() -> None:
    pieces = Pieces(
        name="by hand",
        pace=QWEN_7B,
        generated=1_000.0,
        prefilled=50.0,
        running=1_024,
        context=349.0,
        idle=0.1,
        cpu_seconds=0.0036,
    )
    body, output = 28 * (2 * 3584 * 128 * 32 + 3 * 3584 * 18944), 152064 * 3584
    decoding, prompt = 2 * (body + output) / 989e12, 2 * body / 989e12  # both bound by arithmetic: seconds per token
    assert pieces.bound == pytest.approx(1 / decoding)
    seconds = (1_000 * decoding + 50 * prompt) / EFFICIENCY["Qwen2.5-7B"] / 0.9
    assert pieces.gpu_hours == pytest.approx(1e6 * seconds / 3600)
    assert pieces.cpu_hours == pytest.approx(1.0)
    cheaper = costs(pieces, replace(pieces, generated=500.0, prefilled=100.0))
    assert [each.generated for each in cheaper] == [1_000, *(1_000 / factor for factor in SAVINGS.values()), 500]
    assert cheaper[1].prefilled / cheaper[1].generated == pytest.approx(100 / 500)
