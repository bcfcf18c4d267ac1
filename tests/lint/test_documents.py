"""The Markdown documents name what is there: commands, targets of `make`, settings, files, headings, implementations.

What a package index shows of the README is here too: it has no link that the index would break.
"""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

from tests.conftest import ROOT
from tests.lint.documents import (
    CHECKS,
    Document,
    documents,
    slug_of,
    tables,
    wrong_commands,
    wrong_links,
    wrong_settings,
    wrong_tables,
    wrong_targets,
)

DOCUMENTS = documents()
TABLES = {"estimator", "format"}
"""Keys whose implementations some document lists."""


def document(text: str) -> Document:
    """A text as if it stood beside the README."""
    return Document(path=Path("SMALL.md"), text=text)


def test_all_documents_are_looked_at() -> None:
    names = {each.path.as_posix() for each in DOCUMENTS}
    assert names >= {"README.md", "CONTRIBUTING.md", "SECURITY.md", "conf/README.md", "pipeline/README.md"}
    assert "CHANGELOG.md" not in names
    assert not any(name.startswith((".venv", ".cache", "runs/", "dist/")) for name in names)


def test_folders_that_git_ignores_are_left_out(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("runs/\n.venv.*\n*.egg-info/\n")
    for name in ("README.md", "CHANGELOG.md", "runs/a/README.md", "x.egg-info/README.md", "sub/NOTES.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# A\n")
    assert [each.path.as_posix() for each in documents(tmp_path)] == ["README.md", "sub/NOTES.md"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("each", DOCUMENTS, ids=lambda each: each.path.as_posix())
def test_a_document_names_what_is_there(each: Document, check: Any) -> None:
    assert check(each) == []


def test_every_extension_point_has_its_table() -> None:
    assert {key for each in DOCUMENTS for key, _ in tables(each)} >= TABLES


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("python -m pipeline label data=sample run_dir=out", 0),
        ("python -m pipeline label data=sample \\\n  run_dir=out  # a comment", 0),
        ("stepvalue status run_dir=out json=true | jq .condition.state", 0),
        ("watch -n 10 python -m pipeline status run_dir=out", 0),
        ("python -m pipeline grade < cases.jsonl > verdicts.jsonl 2> errors", 0),
        ("FOLDER=x stepvalue label data.path=$FOLDER/rows.jsonl run_dir=${FOLDER}", 0),
        ("stepvalue completion fish > ~/.config/fish/completions/stepvalue.fish", 0),
        ("stepvalue: there is no command", 0),
        ("python -m pipeline COMMAND --help-all", 0),
        ("python -m pipeline lable data=sample", 1),
        ("python -m pipeline label data=sampel", 1),
        ("stepvalue label sampling.rolouts=3", 1),
        ("cd x && stepvalue relabel run_dir=out estimator.rule=often", 1),
        ("python -m pipeline label data=sample \\\n  sampling.rollouts=0", 1),
        ("stepvalue completion tcsh", 1),
        ("stepvalue label 'data=sample", 1),
    ],
)
def test_command_lines_are_parsed(text: str, faults: int) -> None:
    assert len(wrong_commands(document(f"Text.\n\n```bash\n{text}\n```\n"))) == faults


def test_command_lines_in_backticks_are_parsed() -> None:
    text = "Run `python -m pipeline label data=sample`, not `stepvalue label data=sampel`, or `python -m pipeline label ...`."
    assert len(wrong_commands(document(text))) == 1


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("`make demo LIMIT=82`, then `make`", 0),
        ("```\nmake demo\nmake tiny-policy tiny-truth  # make an effort\nRECORD=1 true && make bench\n```", 0),
        ("We make anything.", 0),
        ("`make dmeo`", 1),
        ("```\nmake tset\n```", 1),
        ("```\ntrue && make tset\n```", 1),
        ("`make demo LIMITS=82`", 1),
    ],
)
def test_make_targets_are_looked_up(text: str, faults: int) -> None:
    assert len(wrong_targets(document(text))) == faults


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("`sampling.rollouts`, `policy.openai`, `data.columns.problem=question`, `estimator=pooled`, `format=trl`", 0),
        ("`run_dir=s3://bucket`, `json=true`, `rollouts=8`, `decontaminate.paths=[x]`, `preference.span=rest`", 0),
        ("`run.json`, `plan.json`, `vllm.arguments`, `x.sum()`, `a == b`, `KEY=value`, `key=value`", 0),
        ("`estimator=halves` is a plug-in, `policy=NAME` any", 0),
        ("```\nsampling.rolouts\n```", 0),
        ("| [`plan.run`](plan/run.py) | [`run.more`](run/more/) |", 0),
        ("[`run.more`](README.md)", 1),
        ("`sampling.rolouts`", 1),
        ("`smapling.rollouts`", 1),
        ("`smapling.rollouts=3`", 1),
        ("`estimator=poolde`", 1),
        ("`format=trll`", 1),
        ("`estimator.rule=often`", 1),
        ("`rolout=8`", 1),
        ("`data=sample smapling.rollouts=3`", 1),
        ("| a | b |\n|---|---|\n| `run.trak` | c |", 1),
    ],
)
def test_settings_in_backticks_are_looked_up(text: str, faults: int) -> None:
    assert len(wrong_settings(document(text))) == faults


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("[a](README.md), [b](conf/README.md#settings), ![c](.images/report-light.png), [`d`](tests/)", 0),
        ("# One `two`, three!\n## One `two`, three!\n[a](#one-two-three) [b](#one-two-three-1)", 0),
        ('<a id="here"></a> [a](#here) <img src=".images/report-dark.png">', 0),
        (
            "[a](https://example.org/x?y=1#z), <https://example.org>, [b](mailto:a@example.org), [c][d]\n\n[d]: README.md",
            0,
        ),
        ("`[a](nothing.md)`\n```\n[a](nothing.md)\n```\n<!-- [a](nothing.md) -->", 0),
        ("[a](nothing.md)", 1),
        ("[two\nlines](nothing.md)", 1),
        ("![a](.images/nothing.png)", 1),
        ('<img src="nothing.png">', 1),
        ("[a](../outside.md)", 1),
        ("[a](conf/README.md#nothing)", 1),
        ("# One\n[a](#two)", 1),
        ("# One\n```\n# Two\n```\n[a](#two)", 1),
        ("# One\n[a](#one-1)", 1),
        ("[a](pyproject.toml#one)", 1),
        ("[a][b]", 1),
        ("[a][b]\n\n[b]: nothing.md", 1),
        ("[a](https://exa mple.org)", 0),  # no link at all: it is shown as it is
        ("[a](https:/example.org)", 1),
        ("[a](htps://example.org)", 1),
        ("[a](https://localhost/x)", 1),
        ("[a](https://user@example.org)", 1),
        ("[a](https://example.org:port)", 1),
        ("[a](file:///etc/passwd)", 1),
        ("[a]()", 1),
    ],
)
def test_links_lead_somewhere(text: str, faults: int) -> None:
    assert len(wrong_links(document(text))) == faults


def test_anchors_are_those_of_code_hosts() -> None:
    assert slug_of("How fast it is, and how fast it could be") == "how-fast-it-is-and-how-fast-it-could-be"
    assert slug_of("`value` and *its* [columns](x.md)") == "value-and-its-columns"
    assert slug_of("Resume & go on: `run_dir`") == "resume--go-on-run_dir"
    assert slug_of("Über 95 %") == "über-95-"


def table(key: str, *rows: str) -> Document:
    return document("\n".join([f"| `{key}=` | is |", "|---|---|", *(f"| {row} | x `y` |" for row in rows), "", "`z`"]))


@pytest.mark.parametrize(
    ("made", "faults"),
    [
        (table("estimator", "`fixed`", "`first_success`, `pooled` (`value`)", "`bisect`"), 0),
        (table("estimator", "`estimator=fixed`", "`first_success`", "`pooled`", "`bisect`"), 0),
        (table("run.track", "`tensorboard`", "`mlflow`", "`wandb`"), 0),
        (table("grader", "`code`", "`facts`", "`default`"), 0),
        (table("grader", "`code`", "`facts`", "`math`"), 0),
        (document("| key | is |\n|---|---|\n| `nothing` | x |"), 0),
        (table("estimator", "`fixed`", "`first_success`", "`pooled`"), 1),
        (table("estimator", "`fixed`", "`first_success`", "`pooled`", "`bisect`", "`halves`"), 1),
        (table("estimator", "`fixed`", "`first_success`", "`pooled`", "`bisect`", "`bisect`"), 1),
        (table("format", "`trl`"), 1),
        (table("policy", "`embedded`", "`hf`", "`openai`"), 1),
        (table("estimatr", "`fixed`"), 1),
    ],
)
def test_tables_name_all_implementations_and_no_others(made: Document, faults: int) -> None:
    assert len(wrong_tables(made)) == faults


def long_description() -> str:
    """What the build backend makes of pyproject.toml."""
    metadata = ProjectMetadata(str(ROOT), PluginManager()).core
    assert metadata.readme_content_type == "text/markdown"
    return str(metadata.readme)


def relative(text: str) -> list[str]:
    """What an index would break of a page: links and pictures that are no addresses, links within the page, diagrams."""
    page = document(text)
    prose = re.sub(r"`[^`\n]+`", "x", page.prose)
    targets = re.findall(r"\]\(([^)\s]*)", prose) + re.findall(r"(?:src|href)=[\"']([^\"']*)", prose)
    diagrams = [line for line in text.splitlines() if line.strip().startswith("```mermaid")]
    return [target for target in targets if not target.startswith(("https://", "http://", "mailto:"))] + diagrams


def test_an_index_shows_the_readme_without_what_it_would_break() -> None:
    text = long_description()
    assert relative(text) == []
    readme = (ROOT / "README.md").read_text("utf-8")
    assert relative(readme) != []
    headings = re.findall(r"(?m)^## .*$", Document(path=Path("README.md"), text=readme).prose)
    assert headings
    assert re.findall(r"(?m)^## .*$", document(text).prose) == headings


SMALL = """\
# A [page](https://example.org) of [files](a/b.md) and [`code`](c.md), `[d](e.md)`, [two
lines](#there)

![picture](.images/p.png)

[![badge](.images/b.png)](f.md)

| one | two |
|---|---|
| ![a](a.png) | ![b](b.png) |

```mermaid
flowchart LR
```

```
[x](y.md)
```
"""


def for_index(text: str, repository: str = "") -> str:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.for_index(text, repository))


def test_pictures_and_links_are_left_out_without_a_repository() -> None:
    assert for_index(SMALL) == (
        "# A [page](https://example.org) of files and `code`, `[d](e.md)`, two\nlines\n\n```\n[x](y.md)\n```\n"
    )


def test_pictures_and_links_lead_into_a_repository() -> None:
    text = for_index(SMALL, "https://example.org/o/r/")
    assert "[files](https://example.org/o/r/blob/HEAD/a/b.md)" in text
    assert "![picture](https://example.org/o/r/raw/HEAD/.images/p.png)" in text
    assert "[![badge](https://example.org/o/r/raw/HEAD/.images/b.png)](https://example.org/o/r/blob/HEAD/f.md)" in text
    assert "| ![a](https://example.org/o/r/raw/HEAD/a.png) |" in text
    assert "two\nlines\n" in text
    assert relative(text) == []
