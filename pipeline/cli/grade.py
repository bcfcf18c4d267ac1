"""The command `grade`: its help, examples and settings; `grade_lines` does the work."""

from pipeline.cli.command import Command, imported
from pipeline.config.label import GradeConfig

GRADE = Command(
    name="grade",
    summary="check answers: read JSON lines and add a verdict to each",
    about=(
        "grade: the answer checker alone. It reads JSON lines and writes the same lines in the same order with verdict, "
        "answer and ms."
    ),
    examples=("grade input=cases.jsonl output=verdicts.jsonl",),
    notes="""\
  zcat outputs.jsonl.gz | python -m pipeline grade grader.processes=2 | grep '"incorrect"'

  {"gold": "1/2", "prediction": "So it is \\\\boxed{0.5}."}         a whole output that states its answer
  {"gold": ["2", "-2"], "prediction": "-2", "extracts": false}   a bare answer; any of several golds counts

A line that cannot be graded comes back with an error that names its number, and the exit code is 2. Blank lines are left out.
Input may end in .gz or .zst. An output file appears when it is whole.
""",
    most_used=(
        "input",
        "output",
        "grader",
        "grader.processes",
        "grader.deadline_seconds",
        "grader.fallback",
        "grader.answer_pattern",
    ),
    schema=GradeConfig,
    run=imported("pipeline.cli.grade_lines:grade_lines"),
)
