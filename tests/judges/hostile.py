"""Pieces of texts that a reader of verdicts may stumble over."""

HOSTILE_TEXTS = 10_000
PIECES = (
    *("\\boxed{", "\\boxed", "{", "}", "}}", "\\text{", "correct", "incorrect", "Yes", "No", "-1", "0", "1", "2", "7"),
    *(
        "\nStep 1:",
        "\nStep 2:",
        "Step 99999999999",
        "\n### Step 1",
        "\\fbox{",
        "\\boxed{\\boxed{",
        "{" * 300,
        "}" * 300,
    ),
    *("\\", "$", "**", "\n", " ", "\x00", "\u2212", "\u202e", "é" * 50, "<analyze>", "</analyze>\n", "</think>", "١"),
    *("__import__('os').system('id')", "%s%n", "{0.__class__}", "\ud83d\ude00", "9" * 500, "\\boxed{" * 50),
)
