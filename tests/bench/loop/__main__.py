"""`python -m tests.bench.loop FOLDER [short | long]`: the closed loop with one of the tiny policies. Started again on the same
folder it goes on, if the code is the same.

The tiny policy samples chains for problems to train on; they are labelled; a process and an outcome reward model are trained
from the policy's own weights; the policy samples candidates for other problems; both models score them. vLLM scores them with
the PRM too: `agree` judges these scores by arithmetic, and `calibrate` by fresh rollouts. In the end `select` says which way to
choose among candidates is right how often.

The second lap labels other problems with the PRM as a witness. One PRM learns from these labels and one from those of Monte
Carlo alone (see `transfer`). In the third, the first lap's PRM steers the policy (see `steered`). Nothing here is asserted:
what comes out is printed.
"""

import random
import sys
from pathlib import Path

from tests.bench.loop.judged import write_judged
from tests.bench.loop.plan import CANDIDATES, LOOPS, SEED, SHORT_LOOP, SOLUTIONS, TEST_PROBLEMS, Files, Loop, stages
from tests.bench.loop.problems import drawn, row
from tests.bench.loop.report import agreement, costs
from tests.bench.loop.stages import code_of, run_all
from tests.bench.loop.steered import steered, steered_stages
from tests.bench.loop.transfer import transfer_stages
from tests.bench.loop.transfer_report import transfer
from tests.conftest import ROOT, write_rows


def main(folder: Path, loop: Loop) -> None:
    files = Files(folder=folder.resolve())
    files.folder.mkdir(parents=True, exist_ok=True)
    problems = drawn(random.Random(SEED), loop.size, loop.train_problems, TEST_PROBLEMS, loop.other_problems)
    for file, of in (
        (files.train_problems, problems.train),
        (files.test_problems, problems.test),
        (files.other_problems, problems.others),
    ):
        write_rows(file, [row(exercise) for exercise in of])
    print(f"{loop.train_problems} problems with {SOLUTIONS} chains each to learn from")
    print(f"{TEST_PROBLEMS} others with {CANDIDATES} candidates each to choose among")
    train, test, others = (
        {exercise.problem: exercise for exercise in of} for of in (problems.train, problems.test, problems.others)
    )
    first = stages(files, loop.policy, lambda: write_judged(files, test))
    more = [*transfer_stages(files, loop.policy), *steered_stages(files, loop.policy)] if others else []
    done = run_all(
        [*first, *more],
        files.folder / "done.json",
        code_of(ROOT / "pipeline", loop.policy.asset),
    )
    print("\nagreement with arithmetic")
    for line in agreement(files, train, test):
        print(line)
    if others:
        print("\nthe first lap's PRM as a witness for labels of other problems")
        for line in transfer(files, others, test):
            print(line)
        print("\nall methods of search with the first lap's PRM")
        for line in steered(files):
            print(line)
    print()
    for line in costs(files, done):
        print(line)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or not {*sys.argv[2:]} <= LOOPS.keys():
        raise SystemExit(f"usage: python -m tests.bench.loop FOLDER [{' | '.join(LOOPS)}]")
    main(Path(sys.argv[1]), LOOPS[sys.argv[2]] if sys.argv[2:] else SHORT_LOOP)
