"""The lab: what a notebook talks to, and how an answer is judged."""

from course_lib.lab.lab import CheckFailed, ClaimFailed, Lab, NotTheSame
from course_lib.lab.panels import Panel

__all__ = ["CheckFailed", "ClaimFailed", "Lab", "NotTheSame", "Panel"]
