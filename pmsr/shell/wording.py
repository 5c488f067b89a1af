"""What errors of the package are called in a shell: options in place of arguments."""

import re
from collections.abc import Sequence

# Patterns of the package's errors, and what they are for somebody who types a command.
_WORDS = (
    (r"\bextra_noise=True\b", "--extra-noise"),
    (r"\bextra_noise=False\b", "no --extra-noise"),
    (r"\bnoise=[\"'](\w+)[\"'] or [\"'](\w+)[\"']", r"--noise \1 or \2"),
    (r"\bnoise=[\"'](\w+)[\"']", r"--noise \1"),
    (r"\blaw_prior=[\"'](\w+)[\"']", r"--law-prior \1"),
    (r"\bfitness=[\"'](\w+)[\"']", r"--fitness \1"),
    (r"\by_err\b", "--error-column"),
    (r"\bsample_weight\b", "--weight-column"),
    (r"\bX_err\b", "--x-error-columns"),
    (r"\bgroups=(?=\W|$)", "--group-column"),
    (r"\bextra_noise\b", "--extra-noise"),
    (r"\bmax_complexity\b", "--max-complexity"),
    (r"\bmax_parameters\b", "--max-parameters"),
    (r"\bmax_time\b", "--time"),
    (r"\bpopulation_size\b", "--population"),
    (r"\bn_islands\b", "--islands"),
    (r"listed: parameters=\[.*?\] of .*?, in the shell --parameters", "listed: --parameters"),
    (r"\bparameters=(?=\W|$)", "--parameters"),
    (r"\bgenerations=(?=\W|$)", "--generations"),
    (r"\binterval names\b", "--interval names"),
    (r"\bunits names\b", "--units names"),
    (
        r"No unit for '(.*?)'\. Write \"1\" for a pure number, \"\?\" if it is not known\.",
        r"No unit for '\1' in --units. Add '\1=1' for a pure number, '\1=?' if it is not known.",
    ),
    (r" Use pmsr\.\w+\(.*?\)\.", ""),
    (r" If they are classes, there are two ways: .*?get_dummies\(X\)\.", ""),
    (r" Convert them with astype\(float\), or leave the column out\.", " Leave the column out."),
    (r"Every column of X\b", "Every column"),
    (r"\bin X\b", "in the file"),
    (r"\brows of X_new\b", "rows"),
    (r" Leave one out, or name both: \{name: equation, \.\.\.\}\.", " Leave one out."),
    (r"Give the folder that save\(\) made\.", "Give the folder that pmsr fit or compare made."),
    (r"must be an identifier\b", "must be one word of letters, digits and _"),
)


def in_words_of_a_shell(text: str) -> str:
    """Return an error about arguments as one about options.

    Examples
    --------
    >>> in_words_of_a_shell('extra_noise=True adds to errors, got no y_err. Use noise="student".')
    '--extra-noise adds to errors, got no --error-column. Use --noise student.'
    """
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text


def counted_as_in_file(text: str, rows: Sequence[int]) -> str:
    """Return an error about arrays with the rows as a file counts them.

    Examples
    --------
    >>> counted_as_in_file("y = -1 in row 2 (counted from 0).", [2, 3, 5])
    'y = -1 in row 5.'
    """
    pattern = r"row (\d+) \(counted from 0\)"
    return re.sub(pattern, lambda found: f"row {rows[int(found[1])]}", text)
