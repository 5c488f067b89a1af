"""Rules that turn numbers into verdicts."""

from collections.abc import Sequence

from pmsr.experiments.pages import Verdict

CLOSE_SHARE = 0.8  # of the paper's share that still counts as reproduced


def judge(is_reproduced: bool, is_better: bool = False) -> Verdict:
    """Name a verdict; what is better is also reproduced.

    Examples
    --------
    >>> judge(True), judge(False), judge(False, is_better=True)
    ('reproduced', 'not reproduced', 'better')
    """
    if is_better:
        return "better"
    return "reproduced" if is_reproduced else "not reproduced"


def judge_share(n: int, of: int, paper: float) -> Verdict:
    """Compare how often something happened with how often it did in the paper.

    Better if the share is larger than the paper's, reproduced if it is at least 80 % of it.

    Examples
    --------
    >>> judge_share(11, 11, 5 / 11), judge_share(9, 10, 1.0), judge_share(1, 4, 1.0)
    ('better', 'reproduced', 'not reproduced')
    """
    share = n / of
    return judge(share >= CLOSE_SHARE * paper, share > paper)


def judge_peak(peaks: Sequence[int], allowed: Sequence[int]) -> Verdict:
    """Tell whether most peaks are where they should be.

    Examples
    --------
    >>> judge_peak([3, 3, 4, 2], (3, 4)), judge_peak([5, 6, 3], (3, 4))
    ('reproduced', 'not reproduced')
    """
    return judge(2 * sum(peak in allowed for peak in peaks) > len(peaks))


def count(n: int, of: int) -> str:
    """Write a share in words.

    Examples
    --------
    >>> count(3, 3), count(2, 3)
    ('all 3', '2 of 3')
    """
    return f"all {of}" if n == of else f"{n} of {of}"
